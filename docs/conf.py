"""How the site is built: ``make docs``."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT), str(DOCS / "_ext"), str(DOCS)]
os.environ.setdefault("MPLBACKEND", "Agg")
# What programs of the pages write goes here, and nothing to where they lie.
WORK = Path(tempfile.gettempdir()) / "pytensorlib-docs"

import figures  # noqa: E402
import reference  # noqa: E402
from sphinx.util import logging  # noqa: E402

import pytensorlib  # noqa: E402

project = "pytensorlib"
author = "The authors of pytensorlib"
copyright = "the authors, under MIT or Apache 2.0"
version = release = str(pytensorlib._C.__version__)

extensions = [
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "snippets",
    "drawing",
]
exclude_patterns = [
    "_build",
    "_generated/*.md",
    "_ext",
    "requirements.*",
    "**/GALLERY_HEADER.rst",
    "tutorials/code",
    "start/changes.md",  # included by two pages
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries = False  # thousands of them, in the side bar of every page
maximum_signature_line_length = 88
html_theme = "furo"
html_title = f"pytensorlib {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
html_last_updated_fmt = None
pygments_style = "friendly"
pygments_dark_style = "native"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
nitpicky = True
suppress_warnings = ["config.cache"]  # a function among the settings


def _arguments(conf: object, variables: dict[str, str]) -> list[str]:
    """Return the command line of a tutorial's program."""
    name = Path(variables["src_file"]).stem
    return ["--out", str(WORK / name)] if variables["src_file"].find("examples") >= 0 else []


class Order:
    """The order in which the tutorials are told."""

    names = (
        "tensors autograd recording digits char_gpt lstm_series vae actor_critic graph_network "
        "lora data_parallel gpu_benchmark"
    ).split()

    def __init__(self, folder: str) -> None:
        pass

    def __call__(self, filename: str) -> int:
        """Return the place of a file."""
        return self.names.index(Path(filename).stem)


sphinx_gallery_conf = {
    "examples_dirs": ["tutorials/code", "../pytensorlib/examples"],
    "gallery_dirs": ["tutorials/basics", "tutorials/programs"],
    "filename_pattern": r"/[a-z]\w*\.py$",
    "ignore_pattern": r"(^|/)_\w*\.py$",
    "reset_argv": _arguments,
    "reset_modules": (),
    "within_subsection_order": Order,
    "ignore_repr_types": r"matplotlib.*",
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 0,
    "image_srcset": ["2x"],
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "plot_gallery": "PYTENSORLIB_DOCS_QUICK" not in os.environ,
    "line_numbers": False,
    "copyfile_regex": "",
    "write_computation_times": False,
    "backreferences_dir": None,
    "promote_jupyter_magic": False,
    "nested_sections": False,
}


def _generate(app: object) -> None:
    """Write what is made of docstrings and of the benchmarks' results."""
    count = reference.write(DOCS / "reference" / "names")
    figures.write(DOCS / "_generated")
    for name, wrong in reference.wrong_examples().items():
        logging.getLogger(__name__).warning("examples of %s:\n%s", name, wrong)
    print(f"reference: {count} public names")


def setup(app: object) -> None:
    """Write the generated pages before any is read."""
    app.connect("builder-inited", _generate, priority=1)  # type: ignore[attr-defined]
