"""What an agent asks a permission for: it waits until a person has answered."""

import asyncio

from midwatch_monitor.records import Activity, PermissionRequest
from midwatch_monitor.state.intervention import InterventionState
from midwatch_tools.inbox import Inbox, stamp
from midwatch_tools.session import Session

_GONE = "the worker does not ask any more"


async def permitted(
    session: Session, tool: str, what: str, withdrawn: "asyncio.Future[bool | None]"
) -> bool:
    """Whether a person lets the worker do something; the attempt waits for a person meanwhile.

    What was allowed before an interruption, and is asked again, is allowed once without a
    question. False where nobody can be asked, and when `withdrawn` is done before an answer.
    """
    inbox, recorder = session.inbox, session.recorder
    if inbox is None:
        return False
    asked = PermissionRequest(tool=tool, what=what, step=recorder.last_step)
    asked = recorder.journal.masker.record(asked)  # as the journal has it
    await inbox.due()
    if (given := inbox.interventions.allowance(asked)) is not None:
        await recorder.record(stamp(given.id, recorder.last_step))
        return True
    await session.stand_still(f"asks to {asked.what}", asked)
    answer = await _answer(inbox, withdrawn)
    if answer is None:
        await session.go_on(Activity.COMMAND, why=_GONE)
        return False
    allowed = answer.intervention.permits
    # A refusal arrives as guidance does, with its words.
    stamps = (stamp(answer.id, recorder.last_step),) if allowed else ()
    await session.go_on(Activity.COMMAND, *stamps)
    return allowed


async def _answer(
    inbox: Inbox, withdrawn: "asyncio.Future[bool | None]"
) -> InterventionState | None:
    """The answer to the newest question; `None` if it is withdrawn first."""
    waiting = asyncio.create_task(inbox.wait())
    try:
        await asyncio.wait({waiting, withdrawn}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            return None
        waiting.result()
    finally:
        waiting.cancel()
    return inbox.interventions.answer(inbox.interventions.permission)
