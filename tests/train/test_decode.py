"""Sampling in batches: the same as one context at a time, whatever is kept, joined or shared."""

import pytest
import torch

from sandmle.llm.local import draw
from sandmle.train.decode import Decoder
from sandmle.train.sampling import Request
from sandmle.train.tiny import tiny_model
from train.test_local import lively

LIMIT = 24


@pytest.fixture(scope="module")
def model(tokenizer):
    return lively(tokenizer, tokenizer.eos_token_id).eval()


def alone(model, tokenizer, request: Request) -> list[int]:
    """Sample a reply with nothing kept from token to token and nobody beside it."""
    generator = torch.Generator().manual_seed(request.seed)
    ids: list[int] = []
    with torch.no_grad():
        while len(ids) < request.limit and ids[-1:] != [tokenizer.eos_token_id]:
            output = model(input_ids=torch.tensor([request.ids + ids]))
            ids.append(int(draw(output.logits[:, -1].float(), [generator], 1.0)[0]))
    return ids


def finish(engine: Decoder, count: int) -> dict[int, list[int]]:
    replies: dict[int, list[int]] = {}
    for _ in range(3 * LIMIT):
        replies |= {key: reply.ids for key, reply in engine.advance()}
    assert len(replies) == count
    return replies


def ask(tokenizer, text: str, seed: int) -> Request:
    return Request(tokenizer.encode(text, add_special_tokens=False), LIMIT, seed)


def test_a_batch_samples_what_each_context_would_alone(model, tokenizer) -> None:
    """Two turns; the second joins while others are sampled, and reads its observation only."""
    first = {k: ask(tokenizer, "plan " * (1 + k // 4), 10 + k) for k in range(8)}
    engine = Decoder(model, tokenizer.eos_token_id, 1.0)
    read: list[int] = []
    hook = model.register_forward_pre_hook(
        lambda module, args, inputs: read.append(inputs["input_ids"].numel()), with_kwargs=True
    )
    with engine.sampling():
        for key, request in first.items():
            engine.submit(key, request)
        replies = {}
        while not replies:
            replies = dict(engine.advance())
        assert read[0] == 2 * len(first[7].ids), "a group's prompt is read once"
        key, reply = next(iter(replies.items()))
        assert reply.ended
        more = tokenizer.encode("done\n", add_special_tokens=False)
        second = Request([*first[key].ids, *reply.ids, *more], LIMIT, 99)
        engine.submit(key, second)
        read.clear()
        replies |= dict(engine.advance())
        assert read[0] == 1 + len(more), "its last token, and what is new"
        others = {k: r.ids for k, r in replies.items() if k != key}
        rest = finish(engine, 8 - len(others))
    hook.remove()
    # the key that went on finishes its second turn among the rest
    assert rest[key] == alone(model, tokenizer, second)
    for k in set(first) - {key}:
        assert (others | rest)[k] == alone(model, tokenizer, first[k])
    assert reply.ids == alone(model, tokenizer, first[key])
    assert len(reply.logprobs) == len(reply.ids)


def test_what_is_sampled_depends_on_the_seed_alone(model, tokenizer) -> None:
    """Same seed, same reply in any company; another seed, another reply."""
    engine = Decoder(model, tokenizer.eos_token_id, 1.0)
    with engine.sampling():
        for key, seed in enumerate((5, 5, 6)):
            engine.submit(key, ask(tokenizer, "open the file", seed))
        replies = finish(engine, 3)
        engine.submit(0, ask(tokenizer, "open the file", 5))
        assert finish(engine, 1)[0] == replies[0] == replies[1] != replies[2]


def test_a_context_that_does_not_go_on_from_what_was_kept_is_read_anew(model, tokenizer) -> None:
    engine = Decoder(model, tokenizer.eos_token_id, 1.0)
    with engine.sampling():
        for seed in (1, 2, 3):
            request = ask(tokenizer, "plan " * seed, seed)
            engine.submit(0, request)
            assert finish(engine, 1)[0] == alone(model, tokenizer, request)
        engine.forget(0)
        engine.forget(0)
        assert not engine._kept


def test_layers_with_a_window_are_read_from_their_beginning(tokenizer) -> None:
    config = tiny_model(tokenizer).config
    config.use_sliding_window = True
    config.sliding_window = 8
    config.layer_types = ["sliding_attention", "full_attention"]
    torch.manual_seed(0)
    model = type(tiny_model(tokenizer))(config).eval()
    engine = Decoder(model, tokenizer.eos_token_id, 1.0)
    requests = {k: ask(tokenizer, "plan the file " * (k + 1), k) for k in range(3)}
    with engine.sampling():
        for key, request in requests.items():
            assert engine.due(1, 0)
            engine.submit(key, request)
        first = dict(engine.advance())
        assert not engine.due(100, 0), "nobody joins"
        replies = finish(engine, 3 - len(first)) | {k: r.ids for k, r in first.items()}
    for key, request in requests.items():
        assert replies[key] == alone(model, tokenizer, request)
    assert not engine._kept


def test_the_model_is_as_it_was_afterwards(model, tokenizer) -> None:
    model.train()
    engine = Decoder(model, tokenizer.eos_token_id, 1.0, bfloat16=True)
    with engine.sampling():
        assert not model.training
        assert torch.is_autocast_enabled("cpu")
        engine.submit(0, ask(tokenizer, "plan", 0))
        assert finish(engine, 1)[0]
    assert model.training
    assert not torch.is_autocast_enabled("cpu")
    model.eval()
