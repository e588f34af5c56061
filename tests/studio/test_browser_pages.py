"""All pages but Label in a real browser, and how they look."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

from sequst.studio.project import Project

from .browser import (
    DIFFERENT,
    JUDGED,
    LONG,
    MORE,
    SUSPECT,
    UNCERTAIN,
    Page,
    Visits,
    button,
    expect,
    go,
    lived_in,
    make,
    press,
    saved,
    shows,
    violations,
)
from .conftest import Serve, Start

PLACES = (
    "label", "progress", "review/suspects", "review/uncertain", "review/differences", "review/all", "review/types", "models",
)  # fmt: skip


def test_from_pasted_text_to_the_first_label(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.change_settings({"train": False, "judging_share": 0.0}, "")
    page = visit(serve(project))
    expect(page.get_by_role("heading", level=1)).to_have_text("Label a few sentences, get a tagger")
    expect(button(page, "Start labelling")).to_be_disabled()
    page.get_by_label("Or paste text").fill("Ada flew to Oslo.\nשלום 👩‍🚀\n\nAda flew to Oslo.\n")
    button(page, "Add the text").click()
    expect(page.get_by_text("2 sentences added. 1 sentence was known already.")).to_be_visible()
    file = tmp_path / "more.txt"
    file.write_text("Ida met Ada.\n")
    page.locator("#text-file").set_input_files(file)
    expect(page.get_by_text("3 sentences, 0 types").or_(page.get_by_text("Name at least one type."))).to_be_visible()
    page.get_by_label("Types, with commas between them").fill("person, place")
    press(page, "Enter")
    expect(page.get_by_text("3 sentences, 2 types.")).to_be_visible()
    button(page, "Start labelling").click()
    expect(button(page, "place")).to_be_visible()
    expect(page.locator(".card.sentence .word").first).to_be_visible()
    text = page.locator(".card.sentence .text").inner_text()
    press(page, "1", "Enter")
    expect(page.locator(".counters")).to_contain_text("1labelled")
    assert saved(project) == {text: [["person", 0, 1]]}


def test_progress_tells_what_is_known(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    page = visit(f"{serve(lived_in(tmp_path))}/#progress")
    cards = page.locator(".card")
    expect(cards.filter(has_text="F1 to expect")).to_contain_text("75.066.0 to 82.0")
    page.get_by_text("The curve as a table").first.click()
    expect(page.get_by_role("region", name="The curve as a table").locator("tbody tr")).to_have_text(
        ["1050.041.0 to 57.02 sentences", "2075.066.0 to 82.02 sentences"]
    )
    expect(page.get_by_role("img", name="F1 by the number of labels")).to_be_visible()
    expect(cards.filter(has_text="Types that lack examples")).to_contain_text("person3 of 10 entities")
    people = cards.filter(has=page.get_by_role("heading", name="People"))
    expect(people.locator("li")).to_have_text(["Ada: 4 sentences", "Bob: 3 sentences"])
    expect(people).to_contain_text("on 3 sentences that two people labelled")
    page.get_by_role("link", name="Skipped").click()
    expect(page.locator(".row .text")).to_have_text(["Skip this."])


def test_a_suspect_is_taken(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    project = lived_in(tmp_path)
    page = visit(f"{serve(project)}/#review/suspects")
    row = page.locator(".row", has_text="Wrong type")
    expect(row.locator(".version")).to_have_text([re.compile("Given"), re.compile("Suggested")])
    row.get_by_role("button", name="Take the suggestion").click()
    expect(row).to_have_count(0)
    expect(page.locator("#saving")).to_have_text("Saved")
    assert saved(project)[SUSPECT] == [["place", 0, 1], ["person", 2, 3]]


def test_a_suspect_that_is_right_stays(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    project = lived_in(tmp_path)
    page = visit(f"{serve(project)}/#review/suspects")
    button(page, "Keep it as it is").click()
    expect(page.locator(".row")).to_have_count(0)
    page.reload()
    expect(page.get_by_text("No label looks wrong.")).to_be_visible()
    assert saved(project)[SUSPECT] == [["person", 0, 1], ["person", 2, 3]]


def test_a_difference_between_two_people_is_settled(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    project = lived_in(tmp_path)
    assert project.counts()["differences"] == 1
    page = visit(f"{serve(project)}/#progress")
    page.get_by_role("link", name="They differ on 1 sentence").click()
    button(page, "Take the labels of Ada").click()
    expect(page.locator(".row")).to_have_count(0)
    assert saved(project)[DIFFERENT] == [["person", 0, 2], ["place", 4, 5]]
    assert project.counts()["differences"] == 0


def test_an_uncertain_entity_is_corrected(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    project = lived_in(tmp_path)
    page = visit(f"{serve(project)}/#review/uncertain")
    row = page.locator(".row", has_text=UNCERTAIN)
    expect(row.locator(".entity")).to_have_text("Victoria")
    row.locator(".word").nth(1).hover()
    press(page, "2", "Enter")
    expect(row).to_have_count(0)
    assert saved(project)[UNCERTAIN] == [["place", 1, 2]]


def test_sentences_are_found_and_mended(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    project = lived_in(tmp_path)
    page = visit(f"{serve(project)}/#review/all")
    expect(page.get_by_role("status").first).to_contain_text("1 to 9 of 9 sentences")
    page.get_by_label("Search").fill("paris")
    expect(page.locator(".row")).to_have_count(1)
    expect(page.locator(".row .text")).to_have_text(JUDGED[1])
    page.locator(".row .word").nth(3).click()
    press(page, "1")
    expect(page.locator(".row").get_by_text("Saved.")).to_be_visible()
    assert saved(project)[JUDGED[1]] == [["place", 0, 1], ["person", 3, 4]]
    page.get_by_label("Search").fill("")
    for status, count in (("Skipped", 1), ("Labelled, for judging", 2), ("Labelled, for learning", 2), ("Not labelled", 4)):
        page.get_by_label("Status").select_option(status)
        expect(page.locator(".row")).to_have_count(count)
    page.get_by_label("Status").select_option("All")
    page.get_by_label("With an entity of type").select_option("place")
    expect(page.locator(".row")).to_have_count(3)


def test_types_change_after_it_is_told_what_that_does(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    project = lived_in(tmp_path)
    page = visit(f"{serve(project)}/#review/types")
    before = saved(project)
    button(page, "Rename person").click()
    page.get_by_label("New name").fill("human")
    button(page, "Go on").click()
    dialog = page.get_by_role("dialog", name="Rename person to human?")
    expect(dialog).to_contain_text("4 entities in 3 sentences will be called human.")
    dialog.get_by_role("button", name="Cancel").click()
    press(page, "Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert saved(project) == before
    button(page, "Rename person").click()
    page.get_by_label("New name").fill("human")
    press(page, "Enter")
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Rename").click()
    expect(button(page, "Merge human")).to_be_visible()
    button(page, "Add a type").click()
    page.get_by_role("textbox", name="Name").fill("work")
    press(page, "Enter")
    dialog = page.get_by_role("dialog", name="Add work?")
    expect(dialog).to_contain_text("4 sentences were labelled before it existed")
    dialog.get_by_role("button", name="Add").click()
    button(page, "Key work").click()
    press(page, "w")
    press(page, "Enter")
    expect(page.locator(".type-row", has_text="work").locator("kbd")).to_have_text("w")
    button(page, "Merge human").click()
    page.get_by_label("Into").select_option("place")
    button(page, "Go on").click()
    dialog = page.get_by_role("dialog", name="Merge human into place?")
    expect(dialog).to_contain_text("4 entities in 3 sentences will become place.")
    dialog.get_by_role("button", name="Merge").click()
    expect(button(page, "Delete human")).to_have_count(0)
    button(page, "Delete work").click()
    button(page, "Go on").click()
    dialog = page.get_by_role("dialog", name="Delete work?")
    expect(dialog).to_contain_text("will lose their label")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.locator(".type-row")).to_have_count(1)
    assert [each.name for each in project.types()] == ["place"]
    assert {text: [["place", *rest] for _, *rest in found] for text, found in before.items()} == saved(project)


def test_models_are_compared_exported_and_labels_downloaded(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    project = lived_in(tmp_path)
    page = visit(f"{serve(project)}/#models")
    expect(page.locator(".model h3")).to_have_text(["Model 2", "Model 1"])
    expect(page.locator(".model", has_text="Model 2")).to_contain_text("in use")
    expect(button(page, "Compare the two")).to_be_disabled()
    for model in (1, 2):
        page.get_by_label(f"Compare model {model}").check()
    button(page, "Compare the two").click()
    expect(page.get_by_role("heading", name="Model 2 against model 1")).to_be_visible()
    expect(page.locator("main")).to_contain_text("on 2 judging sentences")
    expect(page.get_by_role("region", name="F1 by type").locator("tbody tr").first).to_have_text(re.compile(r"^All33\.385\.7$"))
    with page.expect_download() as download:
        page.get_by_role("link", name="Download ONNX").click()
    assert zipfile.ZipFile(download.value.path()).read("0002-onnx/model.onnx") == b"a model"
    page.get_by_label("Which").select_option("those for judging")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download", exact=True).click()
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert sorted(json.loads(line)["text"] for line in lines) == sorted(JUDGED)
    with page.expect_popup() as report:
        page.get_by_role("link", name="Report of model 2").click()
    expect(report.value.get_by_role("heading")).to_have_text("Report of model 2")
    button(page, "Export spaCy").first.click()
    expect(page.locator(".training").get_by_text("Export", exact=True)).to_be_visible()
    expect(button(page, "Export folder").first).to_be_disabled()
    button(page, "Stop").click()
    expect(button(page, "Export folder").first).to_be_enabled()
    asked = project.database.reading.execute("SELECT kind, data, status FROM jobs").fetchall()
    assert [tuple(each) for each in asked] == [("export", '{"model": 2, "as": "spacy"}', "stopped")]


def test_settings_and_names_are_kept(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    project = make(tmp_path, MORE)
    page = visit(f"{serve(project)}/#progress")
    page.get_by_label("Share of sentences for judging").fill("35")
    press(page, "Tab")
    page.get_by_label("Train while I label").check()
    learn = page.get_by_role("checkbox", name="Learn from the judging sentences")
    learn.click()
    button(page, "Cancel").click()
    expect(learn).not_to_be_checked()
    learn.click()
    button(page, "Learn from them").click()
    button(page, "Your name").click()
    page.get_by_role("textbox", name="Name").fill("Zoë ✎")
    press(page, "Enter")
    expect(button(page, "Your name")).to_contain_text("Zoë ✎")
    page.reload()
    expect(page.get_by_label("Share of sentences for judging")).to_have_value("35")
    expect(learn).to_be_checked()
    settings = project.settings
    assert (settings.judging_share, settings.train, settings.learn_judging) == (0.35, True, True)
    go(page, "label")
    expect(page.locator(".card.sentence .word").first).to_be_visible()
    press(page, "Enter")
    expect(page.locator(".counters")).to_contain_text("1labelled")
    assert [row["who"] for row in project.database.reading.execute("SELECT who FROM answers")] == ["Zoë ✎"]


def test_a_token_is_asked_for(start: Start, visit: Visits, tmp_path: Path) -> None:
    project = make(tmp_path, MORE)
    token = tmp_path / "token"
    token.write_text("0123456789abcdef0123\n")
    token.chmod(0o600)
    visit.expect("401")
    address = start(project.folder, "--token-file", str(token)).address
    page = visit(address)
    field = page.get_by_role("textbox", name="Token")
    field.fill("not this one, not at all")
    press(page, "Enter")
    expect(page.get_by_role("alert").filter(has_text="this token is not known")).to_be_visible()
    field.fill("0123456789abcdef0123")
    press(page, "Enter")
    shows(page, MORE[0])
    press(page, "1", "Enter")
    shows(page, MORE[1])
    assert saved(project) == {MORE[0]: [["person", 0, 1]]}
    given = visit(f"{address}/?token=0123456789abcdef0123")
    expect(given.locator(".card.sentence .word").first).to_be_visible()
    assert "token" not in given.url


# How it looks


def test_a_narrow_screen_needs_no_scrolling_sideways(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    page = visit(serve(lived_in(tmp_path)), viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    shows(page, LONG)
    for place in PLACES:
        open_place(page, place)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, place
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    empty = visit(serve(Project(tmp_path / "empty")), viewport={"width": 360, "height": 740})
    expect(empty.get_by_role("heading", level=1)).to_be_visible()
    assert empty.evaluate("document.documentElement.scrollWidth") <= 360


def test_dark_follows_the_system_until_it_is_chosen(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    page = visit(serve(make(tmp_path, MORE)), color_scheme="dark")
    shows(page, MORE[0])
    assert brightness(page, "background-color") < 60 < 200 < brightness(page, "color")
    button(page, "Theme: auto").click()
    button(page, "Theme: light").wait_for()
    assert brightness(page, "color") < 60 < 200 < brightness(page, "background-color")
    page.reload()
    shows(page, MORE[0])
    assert brightness(page, "color") < 60 < 200 < brightness(page, "background-color")


def test_every_page_is_accessible(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    page = visit(serve(lived_in(tmp_path)))
    shows(page, LONG)
    press(page, "End", "Shift+ArrowLeft")
    for place in PLACES:
        open_place(page, place)
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        check(page, place)
    for model in (1, 2):
        page.get_by_label(f"Compare model {model}").check()
    button(page, "Compare the two").click()
    expect(page.get_by_role("heading", name="Model 2 against model 1")).to_be_visible()
    check(page, "comparison")


def test_every_dialog_is_accessible(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    page = visit(serve(lived_in(tmp_path)))
    shows(page, LONG)
    for place, name in (
        ("label", "Keys"), ("label", "Your name"), ("review/types", "Add a type"), ("review/types", "Rename person"),
        ("review/types", "Key person"), ("review/types", "Merge person"), ("review/types", "Delete person"),
    ):  # fmt: skip
        open_place(page, place)
        button(page, name).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        check(page, name)
        if name == "Merge person":
            button(page, "Go on").click()
            expect(page.get_by_role("dialog", name="Merge person into place?")).to_be_visible()
            check(page, "Merge?")
            press(page, "Escape")
        press(page, "Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_first_page_is_accessible(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    page = visit(serve(Project(tmp_path / "project")))
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    check(page, "welcome")
    judging = visit(serve(make(tmp_path / "judging", MORE, judging_share=0.9)))
    expect(judging.locator(".judging")).to_contain_text("For judging")
    check(judging, "judging")


def open_place(page: Page, place: str) -> None:
    """Show a page with all that it loads."""
    go(page, place)
    expect(page.locator("#pages a[aria-current]")).to_have_attribute("href", f"#{place.partition('/')[0]}")
    expect(page.locator("[aria-busy]")).to_have_count(0)
    if place in ("label", "models", "review/suspects", "review/uncertain", "review/differences", "review/all", "review/types"):
        expect(page.locator(".row, .card.sentence .word").first).to_be_visible()


def check(page: Page, what: str) -> None:
    """By all rules of axe in the light, and in the dark by those on colours."""
    assert not violations(page), what
    page.emulate_media(color_scheme="dark")
    assert not violations(page, "color-contrast", "link-in-text-block"), f"{what}, dark"
    page.emulate_media(color_scheme="light")


def brightness(page: Page, name: str) -> float:
    red, green, blue = page.evaluate(
        "name => getComputedStyle(document.body).getPropertyValue(name).match(/[0-9.]+/g).slice(0, 3).map(Number)", name
    )
    return 0.3 * red + 0.59 * green + 0.11 * blue
