"""Takes the pictures of the studio that the docs show: docs/images/studio-*.png.

  python benchmarks/studio_pictures.py [--project FOLDER] [--browser /usr/bin/chromium]

It opens `sequst studio --demo`, labels sentences with the gold labels of the generated corpus for two people, a few of them
wrong on purpose, waits for each training, looks for wrong labels, and takes a picture of each page: about ten minutes on two
CPU cores. With --project the same folder is shown again, and only what is missing is labelled.
It needs Playwright (`pip install playwright`) and Chromium.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from studio_process import Studio

from sequst.corpus.generated import generate
from sequst.corpus.tags import spans
from sequst.files import Scratch

IMAGES = Path(__file__).parent.parent / "docs" / "images"
SIZE = {"width": 1200, "height": 760}
LABEL_HEIGHT = 420
"""Of the picture of the page Label, which is empty below."""
PEOPLE = {"Anna": 46, "Ben": 9}
"""How many sentences each of them labels."""
WRONG_EVERY = 12
"""One of so many sentences gets a wrong label, so that there is something to review."""


def label(studio: Studio) -> None:
    """Label with the gold labels until each person has done theirs."""
    gold = {sentence.words: sentence.tags or () for sentence in generate().pool}
    done = {each["name"]: each["labeled"] for each in studio.ask("GET", "/api/state")["people"]}
    types = [each["name"] for each in studio.ask("GET", "/api/types")["types"]]
    for who, wanted in PEOPLE.items():
        for place in range(done.get(who, 0), wanted):
            given = studio.ask("GET", "/api/next", x_annotator=who, x_tab="pictures")
            entities = [span._asdict() for span in spans(gold[tuple(given["words"])])]
            if entities and place % WRONG_EVERY == 3:
                entities[0]["type"] = next(name for name in types if name != entities[0]["type"])
            told = studio.ask("POST", f"/api/sentences/{given['id']}/labels", {"entities": entities}, x_annotator=who)
            state = studio.wait()
            print(who, told["labeled"], "F1", state["f1"] and round(state["f1"]["value"], 1), flush=True)


def show_well(studio: Studio) -> str:
    """Let some tabs take a sentence each. Returns the tab whose suggestions show most: several types, and a doubtful one."""

    def worth(given: Any) -> tuple[int, int]:
        unsure = sum(0.5 < each["confidence"] < 0.8 for each in given["suggestions"])
        return min(unsure, 1), len({each["type"] for each in given["suggestions"]})

    given = {
        tab: studio.ask("GET", "/api/next", x_annotator="Anna", x_tab=tab)
        for tab in (f"picture-{number}" for number in range(16))
    }
    return max(given, key=lambda tab: worth(given[tab]))


def take_pictures(address: str, browser: str, tab: str) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = opened.new_page(viewport=SIZE, color_scheme="light")
        page.add_init_script(f"localStorage.setItem('sequst.name', '\"Anna\"'); sessionStorage.setItem('sequst.tab', '{tab}')")
        for name in ("label", "progress", "review", "models"):
            page.goto(f"{address}#{name}")
            page.wait_for_selector("sequst-sentence .entity" if name == "label" else "main h1")
            page.wait_for_timeout(1000)  # lists are loaded after the page
            clip = {"x": 0, "y": 0, "width": SIZE["width"], "height": LABEL_HEIGHT if name == "label" else SIZE["height"]}
            page.screenshot(path=IMAGES / f"studio-{name}.png", clip=clip)
        opened.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", type=Path)
    parser.add_argument("--browser", default="/usr/bin/chromium")
    args = parser.parse_args()
    with Scratch() as scratch:
        studio = Studio(args.project or Path(scratch) / "demo", "--demo")
        try:
            label(studio)
            if studio.ask("GET", "/api/state")["suspects"] is None:
                studio.ask("POST", "/api/suspects", {})
                studio.wait()
            take_pictures(studio.address, args.browser, show_well(studio))
        finally:
            studio.stop()


if __name__ == "__main__":
    main()
