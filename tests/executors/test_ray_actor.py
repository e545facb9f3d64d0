"""The far end of a Ray worker, without Ray: what it takes and what it tells."""

from __future__ import annotations

import dataclasses
import os
import pickle
import platform

from etils import epath

from data_parallelism.errors import UserError
from data_parallelism.executors import WorkerLost, ray_actor
from data_parallelism.executors.ray_actor import Place, RayActor
from data_parallelism.groups import Checkpoints, Group, TrialPoint

GROUP = Group(16, (TrialPoint(0, {}),), 20, "vectorized", width=1)


def echo(connection, workload, seed, is_told_to_stop):
    """Sends all back, with what it was started with."""
    while True:
        message = connection.recv()
        connection.send((workload, seed, is_told_to_stop(), message))


def replies_of(actor, count):
    told = []
    while len(told) < count:
        place, replies = actor.replies()
        assert place == Place(platform.node(), os.getpid())
        assert replies
        told += replies
    return told


def test_messages_reach_the_thread_that_trains_in_their_order(monkeypatch):
    monkeypatch.setattr(ray_actor, "serve", echo)
    actor = RayActor(pickle.dumps("workload"), 3, [], {})
    messages = [("limit", (GROUP, step)) for step in range(5)]
    for message in messages:
        actor.tell(message)
    assert replies_of(actor, 5) == [("workload", 3, False, message) for message in messages]
    actor.stop()
    actor.tell(messages[0])
    assert replies_of(actor, 1) == [("workload", 3, True, messages[0])]


def test_variables_are_set_unless_they_are(monkeypatch):
    monkeypatch.setattr(ray_actor, "serve", echo)
    monkeypatch.setenv("OF_THE_NODE", "its own")
    monkeypatch.setenv("OF_THE_CALLER", "to be removed again")
    monkeypatch.delenv("OF_THE_CALLER")
    RayActor(pickle.dumps(None), 0, [], {"OF_THE_NODE": "other", "OF_THE_CALLER": "sent"})
    assert (os.environ["OF_THE_NODE"], os.environ["OF_THE_CALLER"]) == ("its own", "sent")


def test_a_folder_of_records_that_is_not_there_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(ray_actor, "serve", echo)
    actor = RayActor(pickle.dumps(None), 0, [], {})
    told = []
    for study in (tmp_path, tmp_path / "elsewhere"):
        where = Checkpoints(epath.Path(study) / ".running" / "0", 300.0)
        actor.tell(("run", dataclasses.replace(GROUP, checkpoints=where)))
        told += replies_of(actor, 1)
    there, problem = told
    assert there[-1] == ("run", GROUP)
    assert isinstance(problem, UserError)
    assert f"all nodes share, at the same path, got no {tmp_path / 'elsewhere'}" in str(problem)


def broken(*_):
    raise ValueError("two\nlines")


def test_whatever_goes_wrong_is_told_in_one_line(monkeypatch):
    monkeypatch.setattr(ray_actor, "serve", broken)
    (error,) = replies_of(RayActor(pickle.dumps(None), 0, [], {}), 1)
    assert isinstance(error, WorkerLost)
    assert str(error).startswith("ValueError: two (") and "\n" not in str(error)


def test_a_module_that_is_not_installed_is_named():
    pickled = pickle.dumps(echo).replace(b"test_ray_actor", b"test_ray_actoo")
    (error,) = replies_of(RayActor(pickled, 0, [], {}), 1)
    assert isinstance(error, UserError)
    assert "No module named 'test_ray_actoo'" in str(error)


def test_errors_can_be_sent():
    for error in (UserError("a"), WorkerLost("b"), OSError(28, "No space left on device")):
        other = pickle.loads(pickle.dumps(error))
        assert (type(other), str(other)) == (type(error), str(error))
