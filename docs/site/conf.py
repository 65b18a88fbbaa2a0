"""Configuration of the documentation site: Sphinx with MyST and Furo. `make site` builds it."""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from docutils.nodes import Element
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.napoleon import GoogleDocstring
from sphinx.util.nodes import make_refnode

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent / "_ext")]

project = "Fleetfoot"
author = "The authors of Fleetfoot"
release = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
project_copyright = author
html_title = "Fleetfoot"

extensions = ["myst_parser", "sphinx.ext.napoleon", "autoapi.extension", "sphinx_copybutton", "sphinx_design", "scene"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["examples/**", "contrib/**"]
nitpicky = True

myst_enable_extensions = ["attrs_inline", "colon_fence"]
myst_heading_anchors = 6
myst_links_external_new_tab = False
# `bytes` in a signature is Python's, whatever attributes have that name.
suppress_warnings = ["ref.python"]
highlight_language = "text"

# The reference of the Python package is read from its source; nothing is imported, so the compiled part is not needed.
autoapi_dirs = [str(ROOT / "python" / "fleetfoot")]
autoapi_generate_api_docs = False
autoapi_add_toctree_entry = False
autoapi_keep_files = False
autoapi_file_patterns = ["*.py", "*.pyi"]
autoapi_python_class_content = "both"
autoapi_options = ["members", "undoc-members"]
autosummary_generate = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
# Names of other packages and of the compiled part: their documentation is not part of this site.
nitpick_ignore_regex = [("py:.*", r"(?!fleetfoot\.).*"), ("py:.*", r"fleetfoot\.(_.*|progress\.ProgressLike)")]
add_module_names = False

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"}), ("scene.js", {"defer": "defer"})]
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_domain_indices = False
# The search fetches pages for their summaries, which a browser refuses for files.
html_show_search_summary = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0060a0",
        "color-brand-content": "#0060a0",
        "color-brand-visited": "#59487a",
    },
    "dark_css_variables": {
        "color-brand-primary": "#6cb8f0",
        "color-brand-content": "#6cb8f0",
        "color-brand-visited": "#b9a6e0",
    },
    "navigation_with_keys": False,
    "footer_icons": [],
}
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True

# `make site ARGS=--links` asks the addresses of other sites; the build does not use the network.
linkcheck_ignore = [r"http://127\.0\.0\.1.*", r"http://192\.0\.2\..*", r"http://example\.org.*"]
linkcheck_timeout = 20
linkcheck_rate_limit_timeout = 20.0


def public_name(app: Sphinx, env: BuildEnvironment, node: pending_xref, contnode: Element) -> Element | None:
    """Docstrings write `fleetfoot.Name`, as users import it; the reference has it under the module that defines it."""
    found = re.fullmatch(r"fleetfoot\.(\w+(?:\.\w+)?)", node.get("reftarget", ""))
    if node.get("refdomain") != "py" or not found:
        return None
    domain = env.domains["py"]
    defined = sorted(
        name for name in domain.objects if re.fullmatch(rf"fleetfoot(\.\w+)+\.{re.escape(found.group(1))}", name)
    )
    if len(defined) != 1:
        return None
    entry = domain.objects[defined[0]]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, contnode)


def levels_of_captions(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: Element | None) -> None:
    """Gives the captions of the navigation, which are headings, the level that such headings need."""
    if "furo_navigation_tree" in context:
        tree = context["furo_navigation_tree"]
        context["furo_navigation_tree"] = tree.replace('role="heading"', 'role="heading" aria-level="2"')


# The docstring of a property is a sentence: a colon in it does not follow a type.
GoogleDocstring._parse_attribute_docstring = GoogleDocstring._consume_to_end


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the search for public names."""
    app.connect("missing-reference", public_name)
    app.connect("html-page-context", levels_of_captions, priority=900)
    return {"parallel_read_safe": True}
