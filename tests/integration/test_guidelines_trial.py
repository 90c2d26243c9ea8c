"""A version is tried on finished tasks, adopted by the policy, and taken back by it."""

import asyncio
from typing import TYPE_CHECKING

import pytest
from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from midwatch_monitor.config.learning import GuidelinesSettings, LearningSettings
from midwatch_monitor.config.settings import Settings
from midwatch_monitor.config.tasks import Role
from midwatch_monitor.errors import UsageError
from midwatch_monitor.journal.learned.learned import Learned
from midwatch_monitor.records import (
    Actor,
    Ending,
    Feedback,
    Guidelines,
    GuidelinesAct,
    GuidelinesMark,
    GuidelinesState,
    Lifecycle,
    Origin,
    Recall,
    Study,
    Trial,
    TrialScore,
)
from midwatch_supervisor.learning.retrial import state_of
from midwatch_supervisor.learning.trial import take_back, try_guidelines
from midwatch_tools.watch import now

if TYPE_CHECKING:
    from conftest import Past, Stage

GOOD = "## Working rules\n\n- Run the failing test before you say that you are done."
BAD = "## Working rules\n\n- Say that you are done as soon as you can."
AUTO = LearningSettings(guidelines=GuidelinesSettings(enabled=True, auto=True, regressions=2))
TWICE = AUTO.model_copy(update={"tries": 2})
_slow: list[str] = []
"""Not empty while the worker of slow tasks hangs."""
_lost: list[str] = []
"""Keys of models that cannot be built."""


async def put(ctx: RunContext[object], path: str) -> str:
    """Write a file."""
    await ctx.workspace.write_bytes(path, b"x")
    return "written"


def model_for(role: Role, key: str) -> Model:
    """A worker that does its task where its guidelines tell it to look at the failing test."""
    if key in _lost:
        raise UsageError(f"model for {key}: there is no key")
    return FunctionModel(_work, model_name="heeding")


async def _work(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    first = messages[0]
    assert isinstance(first, ModelRequest)
    opening = "\n".join(str(getattr(part, "content", "")) for part in first.parts)
    if "slow" in opening and _slow:
        await asyncio.Event().wait()
    begun = any(isinstance(message, ModelResponse) for message in messages)
    eager = "easy" in opening and "as soon as you can" not in opening
    if begun or not (eager or "failing test" in opening):
        return ModelResponse(parts=[TextPart("Done.")])
    return ModelResponse(parts=[ToolCallPart("put", {"path": "out.txt"})])


def tasks(*goals: str) -> str:
    listed = "".join(
        f"  - {{id: {goal}, goal: {goal}, project: shop, acceptance: [{{file: out.txt}}]}}\n"
        for goal in goals
    )
    return (
        f'models: {{worker: "scripted:{__name__}@0", supervisor: none}}\n'
        f'workers: {{w: {{kind: task, tools: ["{__name__}:put"]}}}}\n'
        f"defaults: {{max_attempts: 1}}\ntasks:\n{listed}"
    )


@pytest.fixture(autouse=True)
def _all_models() -> None:  # pyright: ignore[reportUnusedFunction]
    _lost.clear()
    _slow.clear()


async def propose(stage: "Stage", text: str, *sources: int) -> int:
    versions = await Learned(stage.journal).guidelines("shop")
    return await stage.say(Guidelines(version=len(versions) + 1, text=text, sources=sources))


async def tried(stage: "Stage", learning: LearningSettings = AUTO) -> Trial | None:
    settings: Settings = stage.settings.model_copy(update={"learning": learning})
    return await try_guidelines(stage.journal, "shop", settings=settings, home=stage.home, now=now)


async def live(stage: "Stage") -> str:
    known = await Learned(stage.journal).live_guidelines("shop")
    return known.guidelines.text if known else ""


async def test_a_version_that_makes_a_finished_task_succeed_is_adopted(stage: "Stage") -> None:
    await stage.run(tasks("hard"))
    version = await propose(stage, GOOD)
    assert await tried(stage) == Trial(
        guidelines=version,
        scores=(TrialScore(task="hard", before=0.0, after=1.0),),
        adopted=True,
        reason="a mean gain of 1.00 over 1 finished tasks, none worse",
    )
    assert await live(stage) == GOOD
    (mark,) = await stage.told(GuidelinesMark)
    assert (mark.act, mark.by) == (GuidelinesAct.APPROVED, Actor.POLICY)


async def test_a_trial_is_made_of_runs_of_its_own_from_which_nothing_is_learned(
    stage: "Stage",
) -> None:
    await stage.run(tasks("hard"))
    await propose(stage, GOOD)
    await tried(stage)
    _, *trials = await stage.journal.runs()
    assert [each.source for each in trials] == ["trial of guidelines 1"] * 2
    of = [task for run in trials for task in await stage.journal.tasks(run.id)]
    assert [task.project for task in of] == ["", ""]
    assert [len(await stage.journal.attempts(task.id)) for task in of] == [1, 1]


async def test_a_version_that_makes_one_task_worse_is_not_adopted(stage: "Stage") -> None:
    await stage.run(tasks("easy"))
    version = await propose(stage, BAD)
    assert await tried(stage) == Trial(
        guidelines=version,
        scores=(TrialScore(task="easy", before=1.0, after=0.0),),
        reason="worse at easy",
    )
    assert await live(stage) == ""


async def test_a_version_is_tried_once(stage: "Stage") -> None:
    await stage.run(tasks("easy"))
    await propose(stage, BAD)
    await tried(stage)
    assert await tried(stage) is None


async def test_tasks_that_a_version_was_not_drawn_from_come_first(stage: "Stage") -> None:
    await stage.run(tasks("hard"))
    await stage.run(tasks("hard", "easy"))
    *_, last = await stage.journal.runs()
    (source,) = await stage.journal.attempts((await stage.journal.tasks(last.id))[0].id)
    await propose(stage, GOOD, source.id)
    one = AUTO.model_copy(update={"guidelines": AUTO.guidelines.model_copy(update={"held_out": 1})})
    trial = await tried(stage, one)
    assert trial is not None
    assert [each.task for each in trial.scores] == ["easy"]


async def test_without_a_finished_task_nothing_is_adopted(past: "Past", stage: "Stage") -> None:
    await past.end(await past.attempt("shop"))
    version = await propose(stage, GOOD)
    reason = "there is no finished task with acceptance checks to try it on"
    assert await tried(stage) == Trial(guidelines=version, reason=reason)


async def test_without_a_model_nothing_is_adopted(stage: "Stage") -> None:
    await stage.run(tasks("hard"))
    await propose(stage, GOOD)
    _lost.append("hard")
    trial = await tried(stage)
    assert trial is not None
    assert (trial.adopted, trial.reason) == (
        False,
        "it could not be tried: model for hard: there is no key",
    )


@pytest.mark.parametrize("knobs", [{"auto": False}, {"enabled": False}])
async def test_without_the_switch_nothing_is_tried(stage: "Stage", knobs: dict[str, bool]) -> None:
    await stage.run(tasks("hard"))
    await propose(stage, GOOD)
    off = AUTO.guidelines.model_copy(update=knobs)
    assert await tried(stage, AUTO.model_copy(update={"guidelines": off})) is None


async def test_nothing_of_a_trial_is_left_to_be_resumed(stage: "Stage") -> None:
    await stage.run(tasks("hard"))
    await propose(stage, GOOD)
    await tried(stage)
    for run in await stage.journal.runs():
        for task in await stage.journal.tasks(run.id):
            state = await state_of(stage.journal, task)
            assert state.lifecycle in {Lifecycle.COMPLETED, Lifecycle.FAILED}


async def cut_off(stage: "Stage") -> None:
    """A trial that is cancelled once its first run has begun to work."""
    runs = len(await stage.journal.runs())
    trial = asyncio.create_task(tried(stage, TWICE))

    async def begun() -> bool:
        later = (await stage.journal.runs())[runs:]
        tasks = [task for run in later for task in await stage.journal.tasks(run.id)]
        return any([await stage.journal.attempts(task.id) for task in tasks])

    await stage.until(begun)
    trial.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trial


async def test_a_trial_that_is_cut_off_is_tried_again_but_not_for_ever(stage: "Stage") -> None:
    await stage.run(tasks("slow"))
    version = await propose(stage, GOOD)
    _slow.append("now")
    await cut_off(stage)
    await cut_off(stage)
    assert await tried(stage, TWICE) is None
    cut = Trial(guidelines=version, reason="it was cut off before its end")
    assert await stage.told(Trial) == [cut, cut]
    _, one, two = await stage.journal.runs()
    ends = [
        (await state_of(stage.journal, task)).lifecycle
        for run in (one, two)
        for task in await stage.journal.tasks(run.id)
    ]
    assert ends == [Lifecycle.CANCELED] * 2


# -- taken back ----------------------------------------------------------------------------


async def adopted(past: "Past", by: Actor = Actor.POLICY) -> int:
    attempt = await past.attempt("shop")
    ids = [
        await past.say(attempt, Guidelines(version=number, text=text))
        for number, text in enumerate((BAD, GOOD), 1)
    ]
    for id in ids:
        mark = GuidelinesMark(guidelines=id, act=GuidelinesAct.APPROVED, by=by)
        await past.say(attempt, mark)
    return ids[-1]


async def under(past: "Past", version: int, ending: Ending, *verdicts: Feedback) -> None:
    attempt = await past.attempt("shop")
    await past.say(attempt, Recall(guidelines=version))
    await past.end(attempt, ending)
    await past.say(attempt, *verdicts) if verdicts else None


async def taken_back(past: "Past") -> GuidelinesMark | None:
    return await take_back(
        past.journal, "shop", settings=Settings(learning=AUTO), now=lambda: past.at
    )


async def test_after_too_many_rejections_the_text_before_is_in_force_again(past: "Past") -> None:
    version = await adopted(past)
    await under(past, version, Ending.UNACCEPTED)
    assert await taken_back(past) is None
    await under(past, version, Ending.DONE, Feedback(accepted=False))
    mark = await taken_back(past)
    assert mark is not None
    assert (mark.act, mark.by, mark.comment) == (
        GuidelinesAct.ROLLED_BACK,
        Actor.POLICY,
        "2 attempts under it were rejected",
    )
    known = await past.learned.live_guidelines("shop")
    assert known is not None
    assert known.guidelines.text == BAD


async def test_a_person_has_the_last_word_and_what_is_implied_has_none(past: "Past") -> None:
    version = await adopted(past)
    await under(past, version, Ending.UNACCEPTED, Feedback(accepted=True))
    await under(past, version, Ending.DONE, Feedback(accepted=False, origin=Origin.IMPLIED))
    await under(past, version, Ending.STUCK)
    assert await taken_back(past) is None


async def test_attempts_under_another_version_do_not_count(past: "Past") -> None:
    version = await adopted(past)
    await under(past, version - 1, Ending.UNACCEPTED)
    await under(past, version, Ending.UNACCEPTED)
    assert await taken_back(past) is None


async def test_what_a_person_approved_is_left_to_persons(past: "Past") -> None:
    version = await adopted(past, Actor.OPERATOR)
    for _ in range(3):
        await under(past, version, Ending.UNACCEPTED)
    assert await taken_back(past) is None
    known = await past.learned.guidelines_version(version)
    assert known.state is GuidelinesState.LIVE


async def test_forgetting_a_project_leaves_nothing_of_the_trials_of_its_guidelines(
    stage: "Stage",
) -> None:
    await stage.run(tasks("hard"))
    await propose(stage, GOOD)
    await tried(stage)
    done = await Learned(stage.journal).forget("shop", author="me", at=now())
    assert await stage.journal.runs() == []
    assert await stage.journal.entries() == []
    assert (done.tasks, done.attempts) == (3, 3)


async def test_a_trial_uses_up_no_try_of_what_is_still_to_be_learned(stage: "Stage") -> None:
    await stage.run(tasks("hard"))
    await stage.say(Feedback(accepted=False, comment="It is wrong."))
    await propose(stage, GOOD)
    before = await stage.told(Study)
    await tried(stage)
    assert await stage.told(Study) == before
