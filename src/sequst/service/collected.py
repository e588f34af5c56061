"""Labels that people submit in Label Studio, in files that `sequst train` reads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from sequst.errors import SequstError, UsageError, said
from sequst.files import as_json, as_path, atomic_text, explained, lock
from sequst.inputs import read_json

log = logging.getLogger(__name__)

_RETRY = 5.0
"""Seconds until labels that could not be written are tried again."""
_KEPT = ("id", "result", "was_cancelled", "ground_truth", "completed_by")
"""Of an annotation."""

Tasks = dict[int, dict[str, Any]]
"""Those of a project, by their number."""


class Event(BaseModel):
    """Something that happened in a project of Label Studio."""

    model_config = ConfigDict(extra="allow")
    action: str
    project: dict[str, Any] | None = None
    task: dict[str, Any] | list[dict[str, Any]] | None = None
    annotation: dict[str, Any] | list[dict[str, Any]] | None = None
    annotations: list[dict[str, Any]] = []
    tasks: list[dict[str, Any]] = []


class Collected:
    """A file for each project, `project-1.json`, as Label Studio exports it. All is written before an event is answered."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = as_path(folder)
        with explained(self._folder, "name another folder"):
            self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = lock(self._folder / ".lock", f"{folder}: another server collects labels there; name another folder")
        self._projects = {int(path.stem.removeprefix("project-")): _read(path) for path in self._folder.glob("project-*.json")}
        self._unsaved: set[int] = set()
        self._writing = asyncio.Lock()
        self._retrying: asyncio.Task[None] | None = None

    def path(self, project: int) -> Path:
        return self._folder / f"project-{project}.json"

    async def take(self, event: Event) -> None:
        """Take over what the event says of labels. They are on the disk then; else they are kept and tried again until they
        are, and that is an error."""
        project = event.project.get("id") if event.project else None
        if type(project) is not int or not _change(self._projects.setdefault(project, {}), event):
            return
        self._unsaved.add(project)
        try:
            await self._save()
        except SequstError as error:
            log.error("labels are kept in memory until they can be written: %s", error)
            if self._retrying is None or self._retrying.done():
                self._retrying = asyncio.get_running_loop().create_task(self._try_again())
            raise

    async def _save(self) -> None:
        async with self._writing:
            for project in sorted(self._unsaved):
                tasks = [task for _, task in sorted(self._projects[project].items())]
                text = "[\n" + ",\n".join(map(as_json, tasks)) + "\n]\n"
                self._unsaved.discard(project)  # before it is written: it may change meanwhile
                try:
                    await asyncio.to_thread(_write, self.path(project), text)
                except BaseException:
                    self._unsaved.add(project)
                    raise

    async def close(self) -> None:
        """Write what is not written yet, for the last time."""
        try:
            await self._save()
        except SequstError as error:
            projects = ", ".join(map(str, sorted(self._unsaved)))
            log.error("labels of project %s are lost here; export them from Label Studio: %s", projects, error)
        self._lock.close()

    async def _try_again(self) -> None:
        while self._unsaved:
            await asyncio.sleep(_RETRY)
            try:
                await self._save()
                log.warning("labels that were kept in memory are written now")
            except SequstError:
                continue


def _write(path: Path, text: str) -> None:
    with atomic_text(path) as file:
        file.write(text)


def _read(path: Path) -> Tasks:
    try:
        found = read_json(path)
        if not isinstance(found, list):
            raise TypeError("no list of tasks")
        tasks = {int(task["id"]): task for task in found}
        for task in tasks.values():
            task["data"].items(), [annotation["id"] for annotation in task["annotations"]]
        return tasks
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{path}: not written by this server ({said(error)}); move it elsewhere") from None


def _change(tasks: Tasks, event: Event) -> bool:
    """Change the tasks as the event says; whether it says anything of labels."""
    if event.action in ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_CREATED"):
        by_number = {task.get("id"): task for task in _as_list(event.task)}
        for annotation in _as_list(event.annotation):
            _put(tasks, annotation, by_number)
    elif event.action == "ANNOTATIONS_DELETED":
        gone = {annotation.get("id") for annotation in event.annotations}
        for task in tasks.values():
            task["annotations"] = [each for each in task["annotations"] if each["id"] not in gone]
    elif event.action == "TASKS_DELETED":
        for deleted in event.tasks:
            tasks.pop(deleted.get("id", 0), None)
    else:
        return False
    for number in [number for number, task in tasks.items() if not task["annotations"]]:
        del tasks[number]
    return True


def as_text(value: Any) -> Any:
    """A number as text: Label Studio makes one of a cell of a table that has digits alone."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _put(tasks: Tasks, annotation: dict[str, Any], by_number: dict[Any, dict[str, Any]]) -> None:
    """Add an annotation to its task, or replace the one of its number."""
    number, task = annotation.get("task"), by_number.get(annotation.get("task"), {})
    data, made = task.get("data"), task.get("created_at")
    if type(number) is not int or type(annotation.get("id")) is not int or not isinstance(data, dict):
        raise UsageError("an annotation needs a number, and its task with a number and its data")
    kept = {name: annotation[name] for name in _KEPT if name in annotation}
    regions = annotation.get("result")
    if not isinstance(regions, list) or not all(isinstance(region, dict) for region in regions):
        raise UsageError("an annotation needs a list of regions as result")
    kept["result"] = [_without_text(region) for region in regions]
    before = tasks.get(number, {"annotations": []})
    if made is not None and before.get("created_at", made) != made:
        raise UsageError(f"task {number} is not the one of before; another Label Studio needs another --labels folder")
    others = [each for each in before["annotations"] if each["id"] != annotation["id"]]
    annotations = sorted([*others, kept], key=lambda each: each["id"])
    written = {name: as_text(value) if name != "id" else value for name, value in data.items()}
    tasks[number] = {"id": number, "created_at": made, "data": written, "annotations": annotations}


def _without_text(region: dict[str, Any]) -> dict[str, Any]:
    """Label Studio writes line ends as two characters in the text of a region; its place says it all."""
    value = region.get("value")
    if not isinstance(value, dict):
        return region
    return {**region, "value": {name: each for name, each in value.items() if name != "text"}}


def _as_list(value: Any) -> Iterator[dict[str, Any]]:
    yield from value if isinstance(value, list) else [] if value is None else [value]
