"""Temperature, top-k and dice, as the page on temperature computes them."""

import math

import pytest
from playwright.sync_api import Page

from course.inside.page import load, tempered

SCORES = [2.0, 1.0, 0.5, 0.5, -1.0, -3.0, -30.0]


@pytest.fixture
def page(context) -> Page:
    page = context.new_page()
    page.goto("/model/temperature/")
    return page


def shares(page: Page, scores: list[float], **settings) -> list[float]:
    return page.evaluate(
        """async ([scores, settings]) => {
            const { probabilities } = await import("/assets/model/sampling.js");
            return Array.from(probabilities(scores, settings));
        }""",
        [scores, settings],
    )


def draws(page: Page, probabilities: list[float], seed: int, count: int) -> list[int]:
    return page.evaluate(
        """async ([shares, seed, count]) => {
            const { dice, draw } = await import("/assets/model/sampling.js");
            const random = dice(seed);
            return Array.from({ length: count }, () => draw(shares, random));
        }""",
        [probabilities, seed, count],
    )


@pytest.mark.parametrize("t", [0, 0.01, 0.2, 1, 2])
@pytest.mark.parametrize("top_k", [0, 1, 3])
def test_probabilities_sum_to_1(page, t, top_k):
    assert math.isclose(sum(shares(page, SCORES, t=t, topK=top_k)), 1, abs_tol=1e-12)


def test_at_0_only_the_likeliest_is_drawn(page):
    probabilities = shares(page, SCORES, t=0)
    assert probabilities == [1, 0, 0, 0, 0, 0, 0]
    assert set(draws(page, probabilities, 5, 10_000)) == {0}


def test_at_1_they_are_the_softmax_of_the_scores(page):
    total = sum(map(math.exp, SCORES))
    expected = [math.exp(score) / total for score in SCORES]
    assert shares(page, SCORES, t=1) == pytest.approx(expected)


def test_a_high_temperature_makes_them_more_equal_and_keeps_their_order(page):
    cold, hot = (shares(page, SCORES, t=t) for t in (0.5, 2))
    assert cold[0] > hot[0] and cold[5] < hot[5]
    assert hot == sorted(hot, reverse=True)


def test_top_k_leaves_as_many_as_it_says(page):
    assert [share > 0 for share in shares(page, SCORES, topK=3)] == [True] * 3 + [False] * 4


def test_top_k_counts_tokens_that_were_recorded_together(page):
    probabilities = shares(page, [1.0, 0.0, -1.0], topK=4, counts=[1, 10, 10])
    weights = [math.exp(1), 3 * math.exp(0), 0]
    assert probabilities == pytest.approx([weight / sum(weights) for weight in weights])


def test_10000_draws_agree_with_the_probabilities(page):
    probabilities = [0.4, 0.3, 0.15, 0.1, 0.04, 0.01]
    drawn = draws(page, probabilities, 1, 10_000)
    expected = [10_000 * share for share in probabilities]
    chi_square = sum((drawn.count(i) - e) ** 2 / e for i, e in enumerate(expected))
    assert chi_square < 20.5  # exceeded once in a thousand times, with 5 degrees of freedom


def test_the_same_seed_draws_the_same_and_another_one_does_not(page):
    even = [1 / 8] * 8
    assert draws(page, even, 7, 100) == draws(page, even, 7, 100)
    assert draws(page, even, 7, 100) != draws(page, even, 8, 100)


def test_the_tables_of_the_page_are_computed_like_its_script(page):
    recorded = load("recorded")["prompts"][1]
    entries = [(1, log) for _, log in recorded["shown"]] + [tuple(b) for b in recorded["rest"]]
    counts, logs = zip(*entries, strict=True)
    for t in (0, 0.2, 1, 2):
        theirs = shares(page, list(logs), t=t, counts=list(counts))
        assert theirs == pytest.approx(tempered(entries, t), abs=1e-12)
