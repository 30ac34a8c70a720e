"""Last touches to the HTML of each page: a hook, named in mkdocs.yml."""

import re

# Code that its box cuts off is scrolled by keyboard, too.
_LISTING = "<pre><span></span><code>"
# Names and blanks in a listing look like the text around them: no element is needed for that.
_PLAIN = re.compile(r'<span class="(?:n|w)">([^<]*)</span>')
_INDENTATION = re.compile(r"\n\s+")


def on_post_page(output: str, **_: object) -> str:
    """Called by MkDocs with the HTML of a page."""
    head, start, rest = output.partition("<article")
    article, end, foot = rest.partition("</article>")
    article = _PLAIN.sub(r"\1", article).replace(_LISTING, f'{_LISTING[:-1]} tabindex="0">')
    return _INDENTATION.sub("\n", head) + start + article + end + _INDENTATION.sub("\n", foot)
