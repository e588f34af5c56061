"""Labelling in a real browser."""

from __future__ import annotations

from pathlib import Path

from .browser import (
    MORE,
    Route,
    Visits,
    another,
    button,
    change,
    chosen,
    cursor,
    drag,
    events,
    expect,
    go,
    hover,
    make,
    marks,
    middle,
    press,
    saved,
    shows,
    skipped,
    strings,
    swipe,
    word,
)
from .conftest import Serve, Start


def test_a_session_by_keyboard(start: Start, visit: Visits, tmp_path: Path) -> None:
    flew, twice, met = "Ada flew to Oslo.", "Oslo is not Oslo, says Ada Lovelace.", "Ida met Ada in Rome."
    nothing, called = "Nothing is here.", "Rome called Ida."
    suggested = {
        met: [["person", 0, 1, 0.97], ["person", 2, 3, 0.9], ["place", 4, 5, 0.84]],
        nothing: [["place", 0, 1, 0.4]],
        called: [["person", 0, 1, 0.7]],
    }
    project = make(tmp_path, [flew, twice, met, nothing, called, "Skip me.", *MORE], suggested=suggested)
    page = visit(start(project.folder).address)
    shows(page, flew)
    press(page, "1", "ArrowRight", "ArrowRight", "ArrowRight", "2")
    assert marks(page) == [["person", 0, 1], ["place", 3, 4]]
    press(page, "?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    press(page, "x", "Escape")  # no key reaches the sentence behind the dialog
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert marks(page) == [["person", 0, 1], ["place", 3, 4]]
    press(page, "Enter")
    shows(page, twice)
    press(page, "2", "a", "End", "ArrowLeft", "Shift+ArrowLeft")
    assert chosen(page) == ["Ada", "Lovelace"]
    press(page, "1")
    assert marks(page) == [["place", 0, 1], ["place", 3, 4], ["person", 6, 8]]
    press(page, "Enter")
    shows(page, met)
    assert marks(page) == [["person", 0, 1], ["person", 2, 3], ["place", 4, 5]]
    press(page, "Enter")
    shows(page, nothing)
    press(page, "x", "Enter")
    shows(page, called)
    press(page, "2")  # another type for the entity, whose confidence is the lowest: the cursor is there
    assert marks(page) == [["place", 0, 1]]
    press(page, "End", "ArrowLeft", "1", "1")  # the same key again removes it
    assert marks(page) == [["place", 0, 1]]
    press(page, "u")
    assert marks(page) == [["place", 0, 1], ["person", 2, 3]]
    press(page, "Enter")
    shows(page, "Skip me.")
    press(page, "Backspace")
    shows(page, MORE[0])
    assert skipped(project) == ["Skip me."]
    press(page, "u")
    shows(page, "Skip me.")
    press(page, "u")
    shows(page, called)
    assert marks(page) == [["place", 0, 1], ["person", 2, 3]]
    assert called not in saved(project)
    press(page, "Home", "Delete", "Enter")
    shows(page, "Skip me.")
    press(page, "Backspace")
    shows(page, MORE[0])
    assert saved(project) == {
        flew: [["person", 0, 1], ["place", 3, 4]],
        twice: [["place", 0, 1], ["place", 3, 4], ["person", 6, 8]],
        met: [["person", 0, 1], ["person", 2, 3], ["place", 4, 5]],
        nothing: [],
        called: [["person", 2, 3]],
    }
    assert skipped(project) == ["Skip me."]
    assert events(project, called) == ["labels", "undo", "labels"]
    expect(page.locator(".counters")).to_contain_text("5labelled")


def test_a_session_by_mouse(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    first, second, third = "Ada Lovelace flew to New York.", "Ida met Ada.", "Rome is old."
    project = make(tmp_path, [first, second, third, *MORE])
    page = visit(serve(project))
    shows(page, first)
    hover(page, 0)
    press(page, "2")
    assert marks(page) == [["place", 0, 1]]
    drag(page, 1, 0)  # from right to left
    assert chosen(page) == ["Ada", "Lovelace"]
    press(page, "1")
    drag(page, 4, 5)
    button(page, "place").click()
    assert marks(page) == [["person", 0, 2], ["place", 4, 6]]
    button(page, "Accept").click()
    shows(page, second)
    word(page, 2).dblclick()
    assert chosen(page) == ["Ada"]
    button(page, "person").click()
    word(page, 2).click()
    button(page, "place").click()  # another type
    assert marks(page) == [["place", 2, 3]]
    word(page, 2).click()
    button(page, "place").click()  # the same type removes it
    assert marks(page) == []
    button(page, "Undo").click()
    assert marks(page) == [["place", 2, 3]]
    button(page, "Keys").click()
    button(page, "Close").click()
    button(page, "Accept").click()
    shows(page, third)
    button(page, "Skip").click()
    shows(page, MORE[0])
    button(page, "Undo").click()
    shows(page, third)
    press(page, "Enter")  # the sentence has the focus again, not the button
    shows(page, MORE[0])
    assert saved(project) == {first: [["person", 0, 2], ["place", 4, 6]], second: [["place", 2, 3]], third: []}
    assert events(project, third) == ["skip", "undo", "labels"]


def test_the_word_under_a_mouse_at_rest_is_not_meant(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    project = make(tmp_path, ["Ada flew to Oslo.", "Ida met Ada in Rome.", *MORE])
    page = visit(serve(project))
    shows(page, "Ada flew to Oslo.")
    place = middle(page, 3)
    page.mouse.move(*place)
    press(page, "2", "Enter")
    shows(page, "Ida met Ada in Rome.")
    page.mouse.move(*place)  # as a browser tells of the new text under the mouse
    press(page, "1", "Enter")
    shows(page, MORE[0])
    assert saved(project)["Ida met Ada in Rome."] == [["person", 0, 1]]


def test_suggestions_that_are_right_cost_one_key(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    suggested = {"Ada flew to Oslo.": [["person", 0, 1, 0.99], ["place", 3, 4, 0.55]], "Ida met Ada.": [["person", 0, 1, 0.6]]}
    project = make(tmp_path, [*suggested, *MORE], suggested=suggested)
    page = visit(serve(project))
    for text in suggested:
        shows(page, text)
        press(page, "Enter")
    shows(page, MORE[0])
    assert saved(project) == {text: [list(each[:3]) for each in found] for text, found in suggested.items()}


def test_a_key_held_down_accepts_once(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    project = make(tmp_path, ["Ada flew to Oslo.", *MORE])
    page = visit(serve(project))
    shows(page, "Ada flew to Oslo.")
    for _ in range(5):
        page.keyboard.down("Enter")
    shows(page, MORE[0])
    for _ in range(5):
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    page.wait_for_timeout(300)  # for what must not come
    shows(page, MORE[0])
    assert list(saved(project)) == ["Ada flew to Oslo."]


def test_keys_before_the_next_sentence_do_nothing(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    project = make(tmp_path, ["Ada flew to Oslo.", *MORE])
    page = visit(serve(project))
    shows(page, "Ada flew to Oslo.")
    page.route("**/api/next", lambda route: page.wait_for_timeout(300) or route.continue_())
    press(page, "Enter", "Enter", "Backspace", "1")
    shows(page, MORE[0])
    assert list(saved(project)) == ["Ada flew to Oslo."]
    assert events(project, "Ada flew to Oslo.") == ["labels"]
    assert marks(page) == []


def test_a_sentence_for_judging_comes_without_suggestions(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    texts = ["Ada flew to Oslo.", "Ida met Ada.", "Ada is in Rome."]
    project = make(tmp_path, texts, suggested={text: [["person", 0, 1, 0.9]] for text in texts}, judging_share=0.9)
    page = visit(serve(project))
    expect(page.locator(".judging")).to_contain_text("For judging")
    expect(page.locator(".card.sentence")).to_have_class("card sentence for-judging")
    assert marks(page) == []
    press(page, "2", "Enter")
    expect(page.locator(".counters")).to_contain_text("1labelled")
    assert list(saved(project).values()) == [[["place", 0, 1]]]
    assert project.counts()["judging"] == 1


def test_touch(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    text = "Ada Lovelace flew to Oslo."
    project = make(tmp_path, [text, *MORE])
    page = visit(serve(project), has_touch=True, is_mobile=True, viewport={"width": 820, "height": 1180})
    shows(page, text)
    word(page, 4).tap()
    button(page, "place").tap()  # the word that was tapped before
    assert marks(page) == [["place", 4, 5]]
    button(page, "person").tap()  # from now on words get this type
    expect(button(page, "person")).to_have_attribute("aria-pressed", "true")
    swipe(page, 0, 1)
    assert marks(page) == [["person", 0, 2], ["place", 4, 5]]
    word(page, 2).tap()
    word(page, 2).tap()
    assert marks(page) == [["person", 0, 2], ["place", 4, 5]]
    button(page, "Accept").tap()
    shows(page, MORE[0])
    assert saved(project) == {text: [["person", 0, 2], ["place", 4, 5]]}


def test_two_tabs_show_two_sentences(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    project = make(tmp_path, MORE)
    address = serve(project)
    one = visit(address)
    shows(one, MORE[0])
    two = another(one.context, address)
    shows(two, MORE[1])
    press(one, "1", "Enter")
    shows(one, MORE[2])
    press(two, "2", "Enter")
    shows(two, MORE[3])
    expect(one.locator(".counters")).to_contain_text("2labelled")
    assert saved(project) == {MORE[0]: [["person", 0, 1]], MORE[1]: [["place", 0, 1]]}


def test_a_tab_that_is_duplicated_shows_another_sentence(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    """A browser copies what a tab keeps for its session to the tab that it opens."""
    page = visit(serve(make(tmp_path, MORE)))
    shows(page, MORE[0])
    with page.context.expect_page() as opened:
        page.evaluate("window.open(location.href)")
    shows(opened.value, MORE[1])
    opened.value.reload()
    shows(opened.value, MORE[1])
    page.reload()
    shows(page, MORE[0])


def test_a_reload_keeps_what_is_not_accepted(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    text = "Ada flew to Oslo."
    project = make(tmp_path, [text, *MORE], suggested={text: [["person", 3, 4, 0.3]]})
    page = visit(serve(project))
    shows(page, text)
    press(page, "2", "Home", "1")
    page.reload()
    shows(page, text)
    assert marks(page) == [["person", 0, 1], ["place", 3, 4]]
    assert saved(project) == {}
    press(page, "Enter")
    shows(page, MORE[0])
    assert saved(project) == {text: [["person", 0, 1], ["place", 3, 4]]}
    press(page, "u")
    shows(page, text)
    page.reload()
    shows(page, text)
    assert marks(page) == [["person", 0, 1], ["place", 3, 4]]


def test_the_server_is_killed_and_started_again(start: Start, visit: Visits, tmp_path: Path) -> None:
    project = make(tmp_path, ["Ada flew to Oslo.", "Ida met Ada.", *MORE])
    visit.expect("Failed to load resource: net::ERR_")
    first = start(project.folder)
    page = visit(first.address)
    shows(page, "Ada flew to Oslo.")
    press(page, "1", "Enter")
    shows(page, "Ida met Ada.")
    first.kill()
    press(page, "End", "ArrowLeft", "1", "Enter")
    expect(page.locator("#saving")).to_contain_text("Not saved yet")
    assert list(saved(project)) == ["Ada flew to Oslo."]
    start(project.folder, port=int(first.address.rpartition(":")[2]))
    shows(page, MORE[0])
    expect(page.locator("#saving")).to_have_text("Saved")
    assert saved(project) == {"Ada flew to Oslo.": [["person", 0, 1]], "Ida met Ada.": [["person", 2, 3]]}
    assert events(project, "Ida met Ada.") == ["labels"]
    assert marks(page) == []


def test_labels_whose_answer_is_lost_are_saved_once(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    project = make(tmp_path, ["Ada flew to Oslo.", *MORE])
    visit.expect("Failed to load resource: net::ERR_")
    page = visit(serve(project))
    shows(page, "Ada flew to Oslo.")

    def lose(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/labels", lose, times=1)
    press(page, "1", "Enter")
    shows(page, MORE[0])
    assert saved(project) == {"Ada flew to Oslo.": [["person", 0, 1]]}
    assert events(project, "Ada flew to Oslo.") == ["labels"]


def test_types_change_under_way(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    texts = ["Ada flew to Oslo.", "Ida met Ada."]
    project = make(tmp_path, [*texts, *MORE], suggested={texts[1]: [["person", 0, 1, 0.9], ["place", 2, 3, 0.9]]})
    address = serve(project)
    page = visit(address)
    shows(page, texts[0])
    press(page, "1", "End", "ArrowLeft", "2")
    change(address, op="rename", name="person", to="human")
    expect(button(page, "human")).to_be_visible()
    expect(button(page, "person")).to_have_count(0)
    assert marks(page) == [["human", 0, 1], ["place", 3, 4]]
    press(page, "Enter")
    shows(page, texts[1])
    assert marks(page) == [["human", 0, 1], ["place", 2, 3]]
    change(address, op="delete", name="place")
    expect(button(page, "place")).to_have_count(0)
    assert marks(page) == [["human", 0, 1]]
    press(page, "Enter")
    shows(page, MORE[0])
    assert saved(project) == {texts[0]: [["human", 0, 1]], texts[1]: [["human", 0, 1]]}


def test_labels_that_the_server_refuses_stay(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    """The page has not heard yet that the type is gone."""
    project = make(tmp_path, ["Ada flew to Oslo.", *MORE])
    address = serve(project)
    visit.expect("422")
    page = visit("about:blank")
    page.route("**/api/events", lambda route: route.abort())
    visit.expect("/api/events")
    visit.expect("Failed to load resource: net::ERR_FAILED")
    page.goto(address)
    shows(page, "Ada flew to Oslo.")
    press(page, "1", "End", "ArrowLeft", "2")
    change(address, op="rename", name="person", to="human")
    press(page, "Enter")
    expect(page.get_by_role("alert")).to_contain_text("Unknown type")
    assert saved(project) == {}
    page.unroute("**/api/events")
    page.reload()
    shows(page, "Ada flew to Oslo.")
    assert ["place", 3, 4] in marks(page)


def test_right_to_left(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    text = "דנה גרה בתל אביב ליד Tel Aviv."
    project = make(tmp_path, [text, *MORE])
    page = visit(serve(project))
    shows(page, text)
    order = [cursor(page)]
    for _ in range(7):
        press(page, "ArrowLeft")
        order.append(cursor(page))
    assert order == ["דנה", "גרה", "בתל", "אביב", "ליד", "Aviv", "Tel", "."]  # as they stand from right to left
    press(page, "ArrowRight", "Shift+ArrowRight", "2")
    press(page, "ArrowRight", "Home", "1", "ArrowLeft", "ArrowLeft", "Shift+ArrowLeft", "2", "Enter")
    shows(page, MORE[0])
    assert saved(project) == {text: [["person", 0, 1], ["place", 2, 4], ["place", 5, 7]]}
    assert strings(project) == {text: [("person", "דנה"), ("place", "בתל אביב"), ("place", "Tel Aviv")]}


def test_emoji_and_combining_marks(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    emoji, combining = "👩‍🚀 Ida went to Nice 🇫🇷!", "Die Cafe\u0301s von Zu\u0308rich."
    project = make(tmp_path, [emoji, combining, *MORE])
    page = visit(serve(project))
    shows(page, emoji)
    words = [cursor(page)]
    while words[-1] != "Nice" and len(words) < 20:
        press(page, "ArrowRight")
        words.append(cursor(page))
    assert words == ["👩", "\u200d", "🚀", "Ida", "went", "to", "Nice"]
    press(
        page,
        "2",
        "ArrowRight",
        "Shift+ArrowRight",
        "2",
        "Home",
        "Shift+ArrowRight",
        "Shift+ArrowRight",
        "Shift+ArrowRight",
        "1",
    )
    press(page, "Enter")
    shows(page, combining)
    press(page, "End", "ArrowLeft", "2", "Enter")
    shows(page, MORE[0])
    assert strings(project) == {
        emoji: [("person", "👩‍🚀 Ida"), ("place", "Nice"), ("place", "🇫🇷")],
        combining: [("place", "Zu\u0308rich")],
    }


def test_text_that_looks_like_html_is_text(serve: Serve, visit: Visits, tmp_path: Path) -> None:
    text = "<img src=x onerror=alert(1)> <script>alert(2)</script> &amp; Ada <b onclick='alert(3)'>"
    project = make(tmp_path, [text, *MORE], types=("<i>person</i>", "place"), suggested={text: [["<i>person</i>", 0, 2, 0.9]]})
    page = visit(serve(project))
    page.evaluate("name => localStorage.setItem('sequst.name', JSON.stringify(name))", "<img src=x onerror=alert(4)>")
    page.reload()
    shows(page, text)
    expect(page.locator("main img, main script, main i, main b[onclick]")).to_have_count(0)
    press(page, "Enter")
    shows(page, MORE[0])
    for place, told in (("progress", "<img src=x onerror=alert(4)>"), ("review/all", text), ("review/types", "<i>person</i>")):
        go(page, place)
        expect(page.locator("main")).to_contain_text(told)
        expect(page.locator("main img, main script, main i, main b[onclick]")).to_have_count(0)
