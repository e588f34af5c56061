"""A project to try the studio with: generated text, its types, no labels."""

from __future__ import annotations

from sequst.corpus.generated import generate
from sequst.corpus.tags import types_of
from sequst.studio.project import Project


def make_demo(project: Project) -> None:
    """Fill the project, if it is empty."""
    if project.counts()["sentences"]:
        return
    pool = generate().pool
    project.add_text((sentence.without_tags() for sentence in pool), "generated text")
    for name in types_of([sentence.tags or () for sentence in pool]):
        project.change_types({"op": "add", "name": name}, "")
    project.keep_fact("demo", True)
