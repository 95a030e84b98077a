/* python.exe: all that it does is done in the DLL. */
#include <wchar.h>
int Py_Main(int, wchar_t **);
int wmain(int argc, wchar_t **argv)
{
    return Py_Main(argc, argv);
}
