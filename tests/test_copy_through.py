"""The story by copy and paste: from the page's own buttons into a shell of the practice cluster."""

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from course.play import Failure, SceneRehearsal
from course.rehearse import chosen
from course.scenes import Line, Scene, Take, load_scenes
from course.sites import Practice

# Scenes 4 to 6 train and generate for minutes, and test_rehearse.py plays every take of them.
SCENES = [
    pytest.param(scene, id=scene.lab, marks=[pytest.mark.soak] if scene.number > 3 else [])
    for scene in load_scenes()
]


class Reader(SceneRehearsal):
    """Plays a scene as a reader does: copies what works from the page, and types the rest."""

    def __init__(self, site: Practice, scene: Scene, recordings, page: Page):
        super().__init__(site, scene, recordings)
        self.page = page

    def block(self, take: Take) -> Locator:
        heading = self.page.locator(f"[id='{self.scene.anchor(take)}']")
        return self.page.locator("section.take", has=heading)

    def start_line(self, take: Take) -> str:
        if not take.works:
            return super().start_line(take)
        return self.copied(self.block(take).locator(".take__start .copy"))

    def command_line(self, take: Take, line: Line) -> str:
        if not take.works or line.hidden:
            return super().command_line(take, line)
        lines = [line for terminal in take.terminals for line in terminal.lines]
        commands = [line for line in lines if line.kind == "command" and not line.hidden]
        return self.copied(self.block(take).locator(".terminal .copy").nth(commands.index(line)))

    def copied(self, button: Locator) -> str:
        """Enter the job numbers known by now, as Slurm printed them; click; paste."""
        for name, number in self.numbers.items():
            fields = f"[data-scene='{self.scene.number}'] .terminal__jobs [data-value={name}]"
            for field in self.page.locator(fields).all():
                if field.input_value() != number:
                    field.fill(f"Submitted batch job {number}")
        self.page.evaluate("navigator.clipboard.writeText('')")
        button.click()
        expect(button).to_have_text("Copied")
        return self.page.evaluate("navigator.clipboard.readText()")


@pytest.fixture
def readers_story(cluster, context: BrowserContext) -> Page:
    """The story, opened by marie, who has entered her login."""
    page = context.new_page()
    page.goto("/story/")
    page.get_by_role("button", name="<zih-login>").first.click()
    page.get_by_label("Your login on the cluster").fill(Practice.user)
    page.get_by_role("button", name="Save").click()
    return page


def working(scene: Scene) -> list[Take]:
    """The takes that work, and those before them on which they build."""
    names = [f"{scene.number}/{take.id}" for take in scene.takes if take.works]
    [(_, takes)] = chosen([scene], names)
    return takes


@pytest.mark.parametrize("scene", SCENES)
def test_copied_and_pasted_a_scene_goes_as_the_story_tells(scene, cluster, readers_story, tmp_path):
    with Reader(Practice(cluster), scene, tmp_path, readers_story) as reader:
        for take in working(scene):
            reader.play(take)


ALTER = """code => {
    const text = code.querySelector(".word:last-child").lastChild;
    const last = text.data.charCodeAt(text.data.length - 1);
    text.data = text.data.slice(0, -1) + String.fromCharCode(last + 1);
}"""


@pytest.mark.parametrize("number", range(3))
def test_one_altered_character_is_noticed(number, cluster, readers_story, tmp_path):
    scene = load_scenes()[1]
    take = scene.take("mkdir-first")
    with Reader(Practice(cluster), scene, tmp_path, readers_story) as reader:
        codes = reader.block(take).locator("code:has(.word)")
        assert codes.count() == 3  # the start and two commands
        codes.nth(number).evaluate(ALTER)
        for before in working(scene)[:-1]:
            reader.play(before)
        with pytest.raises(Failure, match="mkdir-first"):
            reader.play(take)
