"""What of a run is news, and in which words."""

from midwatch_monitor.records import (
    Action,
    AlertKey,
    DeliveryState,
    Fault,
    Lifecycle,
    Notified,
    PermissionRequest,
    Record,
)
from midwatch_stage import factories as make
from midwatch_supervisor.notify.news import News, NewsKind, RunNews

SUBJECT = "edit:src/secret_plan.py"


def run_of(*records: Record) -> RunNews:
    run = RunNews(1)
    run.state.meet_task(make.task()).meet(make.attempt(7))
    for entry in make.entries(*records, attempt=7):
        run.fold(entry)
    return run


def news_of(*records: Record) -> list[News]:
    return list(run_of(*records).news())


def waiting(*records: Record) -> list[News]:
    parked = make.transition(Lifecycle.INPUT_REQUIRED)
    return [each for each in news_of(*records, parked) if each.kind is NewsKind.WAITING]


def test_an_alert_is_said_with_its_subject_and_barely_by_its_rule() -> None:
    key = AlertKey(rule="repeated_edits", subject=SUBJECT)
    (told,) = news_of(make.transition(), make.alert(key=key, summary="secret_plan.py again"))
    assert (told.key, told.name, told.attempt) == ("alert:2", "fix#1", 7)
    assert SUBJECT in told.text
    assert "secret_plan.py again" in told.text
    assert told.bare == "firing warning repeated_edits"


def test_an_alert_that_a_person_silenced_is_no_news() -> None:
    key = AlertKey(rule="cycle")
    silence = make.intervention(Action.SILENCE, answers=(key,))
    done = make.delivery(1, DeliveryState.DELIVERED)
    assert news_of(silence, done, make.alert(key=key)) == []


def test_a_question_is_said_with_the_command_that_answers_it() -> None:
    asked = make.intervention(Action.ASK_OPERATOR, message="May I use curl?")
    (told,) = waiting(asked, make.delivery(1, DeliveryState.DELIVERED))
    assert told.text == "waits for an answer: May I use curl?"
    assert told.bare == "waits for an answer"
    assert told.commands == ('midwatch tell fix "your answer"',)


def test_an_answered_question_is_no_news() -> None:
    asked = make.intervention(Action.ASK_OPERATOR, message="May I?")
    delivered = make.delivery(1, DeliveryState.DELIVERED)
    parked = make.transition(Lifecycle.INPUT_REQUIRED)
    assert news_of(asked, delivered, parked, make.transition(Lifecycle.WORKING)) == []


def test_an_approval_and_a_permission_are_asked_for_and_a_pause_is_not() -> None:
    held = make.intervention(Action.RESTART, needs_approval=True)
    (told,) = news_of(held)
    assert told.bare == "waits for approval of restart: `midwatch approve 1` or `reject 1`"
    wants = PermissionRequest(tool="execute", what="run `make`")
    (told,) = waiting(wants)
    assert told.text == "waits for permission to run `make`: `midwatch approve 1` or `reject 1`"
    assert told.bare == "waits for permission: `midwatch approve 1` or `reject 1`"
    pause = make.intervention(Action.PAUSE)
    assert waiting(pause, make.delivery(1, DeliveryState.DELIVERED)) == []


def test_a_node_that_is_gone_and_the_end_of_a_run_are_news() -> None:
    gone = Fault(part="node", error="north is gone: another node goes on with it")
    failed = make.task_transition(Lifecycle.FAILED)
    node, end = news_of(gone, make.ended(), failed)
    assert (node.kind, node.name, node.bare) == (NewsKind.NODE, "fix#1", gone.error)
    assert (end.kind, end.name, end.text) == (NewsKind.END, "run 1", "over: 1 failed")


def test_what_was_told_is_known_from_the_journal_and_so_is_what_failed() -> None:
    failed = Fault(part="message to phone", error="HTTP 503")
    run = run_of(make.alert(), failed)
    assert run.failed == {"message to phone"}
    run = run_of(make.alert(), failed, Notified(target="phone", keys=("alert:1",)))
    assert run.failed == set()
    assert run.told == {"phone": {"alert:1": make.after(3)}}
