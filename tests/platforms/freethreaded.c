/* A free-threaded Python's program, in one that starts packaged applications: it is loaded before that one and runs
 * in place of its main. The words after the program's name are read as Python's own program reads them, without -i. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct PyInitConfig PyInitConfig;

static const char *const RUN =
    "def run():\n"
    "    import sys\n"
    "    words = sys.orig_argv[1:]\n"
    "    if not words and not sys.stdin.isatty():\n"
    "        words = ['-']\n"
    "    names = vars(sys.modules['__main__'])\n"
    "    del names['run']\n"
    "    while words:\n"
    "        word = words.pop(0)\n"
    "        if word in ('-X', '-W'):\n"
    "            words.pop(0)\n"
    "        elif word[0] == '-' and word[1:2] not in ('', 'X', 'W') and word[-1] in 'cm':\n"
    "            sys.path.insert(0, '')\n"
    "            if word[-1] == 'c':\n"
    "                exec(compile(words[0], '<string>', 'exec'), names)\n"
    "            else:\n"
    "                import runpy\n"
    "                runpy._run_module_as_main(words[0])\n"
    "            return\n"
    "        elif word == '-' or word[0] != '-':\n"
    "            import os\n"
    "            with open(word, 'rb') if word != '-' else sys.stdin.buffer as file:\n"
    "                text = file.read()\n"
    "            if word != '-':\n"
    "                sys.path.insert(0, os.path.dirname(os.path.realpath(word)))\n"
    "                names['__file__'] = word\n"
    "            exec(compile(text, word, 'exec'), names)\n"
    "            return\n"
    "    import code\n"
    "    code.interact(local=names)\n"
    "run()\n";

#define TAKE(result, name, ...) result (*name)(__VA_ARGS__) = dlsym(RTLD_DEFAULT, #name)

static int run(int argc, char **argv, char **env)
{
    TAKE(PyInitConfig *, PyInitConfig_Create, void);
    TAKE(int, PyInitConfig_SetInt, PyInitConfig *, const char *, long);
    TAKE(int, PyInitConfig_SetStr, PyInitConfig *, const char *, const char *);
    TAKE(int, PyInitConfig_SetStrList, PyInitConfig *, const char *, size_t, char *const *);
    TAKE(int, PyInitConfig_GetError, PyInitConfig *, const char **);
    TAKE(int, PyInitConfig_GetExitCode, PyInitConfig *, int *);
    TAKE(int, Py_InitializeFromInitConfig, PyInitConfig *);
    TAKE(int, PyRun_SimpleString, const char *);
    TAKE(int, Py_FinalizeEx, void);
    const char *wrong = "";
    int code;
    (void)env;
    /* Only this process is another program than the one that was started. */
    unsetenv("LD_PRELOAD");
    char *program = getenv("FREETHREADED_PROGRAM");
    argv[0] = program;
    PyInitConfig *c = PyInitConfig_Create();
    if (PyInitConfig_SetInt(c, "isolated", 0) || PyInitConfig_SetInt(c, "use_environment", 1) ||
        PyInitConfig_SetInt(c, "utf8_mode", 1) || PyInitConfig_SetInt(c, "parse_argv", 1) ||
        PyInitConfig_SetInt(c, "safe_path", 1) || PyInitConfig_SetInt(c, "install_signal_handlers", 1) ||
        PyInitConfig_SetStr(c, "executable", program) || PyInitConfig_SetStr(c, "home", getenv("FREETHREADED_HOME")) ||
        PyInitConfig_SetStrList(c, "argv", (size_t)argc, argv) || Py_InitializeFromInitConfig(c)) {
        if (PyInitConfig_GetExitCode(c, &code)) /* `--version` was all */
            return code;
        PyInitConfig_GetError(c, &wrong);
        fprintf(stderr, "Python does not start: %s\n", wrong);
        return 1;
    }
    int failed = PyRun_SimpleString(RUN);
    return Py_FinalizeEx() < 0 || failed;
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    __typeof__(&__libc_start_main) start = (__typeof__(start))dlsym(RTLD_NEXT, "__libc_start_main");
    (void)main;
    return start(run, argc, argv, init, fini, rtld_fini, stack_end);
}
