"""Labels that people submit in Label Studio, in files that `sequst train` reads."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from sequst.errors import SequstError, UsageError, said
from sequst.files import as_json, as_path, atomic_text, explained, lock
from sequst.inputs import read_json

log = logging.getLogger(__name__)
T = TypeVar("T")

_RETRY = 5.0
"""Seconds until labels that could not be written are tried again."""

Tasks = dict[int, dict[str, Any]]
"""Those of a project, by their number."""


Number = Annotated[int, Field(strict=True, ge=0, lt=2**63)]


class Numbered(BaseModel):
    """Something of Label Studio's."""

    model_config = ConfigDict(extra="ignore")
    id: Number


class Task(Numbered):
    data: dict[str, Any]
    created_at: str | None = None


class Annotation(Numbered):
    """What somebody submitted for a task."""

    task: Number
    result: list[dict[str, Any]]
    was_cancelled: bool = False
    ground_truth: bool = False
    completed_by: Any = None


class Event(BaseModel):
    """Something that happened in a project of Label Studio."""

    model_config = ConfigDict(extra="ignore")
    action: str
    project: Numbered | None = None
    task: Task | list[Task] | None = None
    annotation: Annotation | list[Annotation] | None = None
    annotations: list[Numbered] = []
    tasks: list[Numbered] = []


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
        if event.project is None or not _change(self._projects.setdefault(event.project.id, {}), event):
            return
        self._unsaved.add(event.project.id)
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
        by_number = {task.id: task for task in _as_list(event.task)}
        changed: Tasks = {}
        for annotation in _as_list(event.annotation):
            if annotation.task not in by_number:
                raise UsageError(f"an annotation of task {annotation.task} without this task")
            before = changed.get(annotation.task, tasks.get(annotation.task))
            changed[annotation.task] = _annotated(by_number[annotation.task], annotation, before)
        tasks.update(changed)
    elif event.action == "ANNOTATIONS_DELETED":
        gone = {annotation.id for annotation in event.annotations}
        for task in tasks.values():
            task["annotations"] = [each for each in task["annotations"] if each["id"] not in gone]
    elif event.action == "TASKS_DELETED":
        for deleted in event.tasks:
            tasks.pop(deleted.id, None)
    else:
        return False
    for number in [number for number, task in tasks.items() if not task["annotations"]]:
        del tasks[number]
    return True


def as_text(value: Any) -> Any:
    """A number as text: Label Studio makes one of a cell of a table that has digits alone."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _annotated(task: Task, annotation: Annotation, before: dict[str, Any] | None) -> dict[str, Any]:
    """The task with the annotation, in place of that of its number."""
    if before is not None and task.created_at is not None and before.get("created_at") not in (None, task.created_at):
        raise UsageError(f"task {task.id} is not the one of before; another Label Studio needs another --labels folder")
    kept = annotation.model_dump(exclude={"task"})
    kept["result"] = [_without_text(region) for region in annotation.result]
    others = [each for each in (before or {"annotations": []})["annotations"] if each["id"] != annotation.id]
    found = {
        "id": task.id,
        "created_at": task.created_at,
        "data": {name: as_text(value) if name != "id" else value for name, value in task.data.items()},
        "annotations": sorted([*others, kept], key=lambda each: each["id"]),
    }
    try:
        as_json(found)
    except SequstError as error:
        raise UsageError(f"task {task.id}: {error}") from None
    return found


def _without_text(region: dict[str, Any]) -> dict[str, Any]:
    """Label Studio writes line ends as two characters in the text of a region; its place says it all."""
    value = region.get("value")
    if not isinstance(value, dict):
        return region
    return {**region, "value": {name: each for name, each in value.items() if name != "text"}}


def _as_list(value: T | list[T] | None) -> list[T]:
    return value if isinstance(value, list) else [] if value is None else [value]
