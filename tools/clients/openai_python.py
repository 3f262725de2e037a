"""What the OpenAI client for Python does with an endpoint; tools/clients.py runs it.

Prints one JSON object: how many checks there were, which did not hold, and TTFT and ITL of the measured requests by X-Request-ID.
"""
import argparse
import asyncio
import json
import sys
import time

import openai

MODEL = "m"


class Checks:
    def __init__(self):
        self.count, self.problems, self.requests = 0, [], {}

    def that(self, held, problem):
        self.count += 1
        if not held:
            self.problems.append(problem)

    def raises(self, kind, what, call):
        """A call must end with exactly this kind of error, soon."""
        started = time.monotonic()
        try:
            call()
            self.that(False, f"{what}: no error")
        except Exception as e:
            self.that(isinstance(e, kind), f"{what}: {type(e).__name__}: {e}, not {kind.__name__}")
        self.that(time.monotonic() - started < 10, f"{what}: took {time.monotonic() - started:.1f} s")

    def measured(self, name, tokens, sent, times, usage):
        """Notes a stream: when its chunks with text came, of which a late one has several tokens."""
        self.that(usage is not None and usage.completion_tokens == tokens, f"{name}: usage {usage}, not {tokens} tokens")
        self.requests[name] = dict(
            ttft_ms=(times[0] - sent) * 1e3,
            itl_ms=(times[-1] - times[0]) / (tokens - 1) * 1e3,
            output_tokens=tokens,
        )


def text(number, length):
    """A prompt of so many bytes that begins like no other."""
    return (f"Question {number}: " + "what does the simulator say of this? " * (length // 32 + 1))[:length]


def arguments(prompt, tokens, name, stream=True):
    options = dict(stream=True, stream_options=dict(include_usage=True)) if stream else {}
    return dict(model=MODEL, messages=[dict(role="user", content=prompt)], max_completion_tokens=tokens,
                extra_headers={"X-Request-ID": name}, extra_body=dict(ignore_eos=True), **options)


def answers(check, client):
    """Whole answers and streams of both endpoints say the same, and count right."""
    check.that([m.id for m in client.models.list()] == [MODEL], "the list of models")
    check.that(client.models.retrieve(MODEL).id == MODEL, "one model")

    prompt = text("of answers", 1000)
    whole = client.chat.completions.create(**arguments(prompt, 100, "py-whole", stream=False))
    choice = whole.choices[0]
    check.that(whole.object == "chat.completion" and whole.model == MODEL, f"a chat completion: {whole}")
    check.that(choice.finish_reason == "length" and choice.message.role == "assistant", f"its choice: {choice}")
    check.that(len(choice.message.content) == 100, f"its content, of a byte a token: {choice.message.content!r}")
    usage = whole.usage
    check.that((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (1000, 100, 1100), f"its usage: {usage}")

    chunks = list(client.chat.completions.create(**arguments(prompt, 100, "py-again")))
    said = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    check.that(said == choice.message.content, f"a stream says {said!r}, the whole answer {choice.message.content!r}")
    check.that(chunks[0].choices[0].delta.role == "assistant", f"the first chunk: {chunks[0]}")
    check.that([c.choices[0].finish_reason for c in chunks if c.choices][-1] == "length", "the reason of the end")
    check.that(not chunks[-1].choices and chunks[-1].usage.total_tokens == 1100, f"the last chunk: {chunks[-1]}")
    check.that(len({c.id for c in chunks}) == 1 and chunks[0].object == "chat.completion.chunk", "the id of chunks")
    details = chunks[-1].usage.prompt_tokens_details
    check.that(details is not None and details.cached_tokens >= 900, f"tokens from the prefix cache: {details}")

    conversation = [dict(role="user", content=prompt), dict(role="assistant", content=said),
                    dict(role="user", content="And then? " * 20)]
    turn = client.chat.completions.create(model=MODEL, messages=conversation, max_tokens=5, extra_body=dict(ignore_eos=True))
    check.that(turn.usage.completion_tokens == 5 and turn.usage.prompt_tokens == 1300, f"the next turn: {turn.usage}")
    check.that(turn.usage.prompt_tokens_details.cached_tokens > 1000, f"the next turn reuses the answer before: {turn.usage}")

    for prompt_as in (prompt, [prompt], list(range(1000))):
        done = client.completions.create(model=MODEL, prompt=prompt_as, max_tokens=8, extra_body=dict(ignore_eos=True))
        check.that(done.object == "text_completion" and len(done.choices[0].text) == 8, f"a completion: {done}")
        check.that((done.usage.prompt_tokens, done.usage.completion_tokens) == (1000, 8), f"its usage: {done.usage}")
    parts = list(client.completions.create(model=MODEL, prompt=prompt, max_tokens=8, stream=True,
                                           stream_options=dict(include_usage=True)))
    check.that(sum(len(c.choices[0].text) for c in parts if c.choices) == 8, f"a stream of a completion: {parts}")
    check.that(parts[-1].usage is not None and parts[-1].usage.completion_tokens == 8, f"its usage: {parts[-1]}")


def choices(check, client):
    """Several answers to one prompt and to several, whole and streamed: the same texts in the same places, and one usage."""
    ask = dict(model=MODEL, max_tokens=10, extra_body=dict(ignore_eos=True))
    one, two = text("of several answers", 300), text("that is another", 200)
    many = dict(
        chat=(client.chat.completions.create, dict(messages=[dict(role="user", content=one)], n=3), 300, 3),
        texts=(client.completions.create, dict(prompt=[one, two]), 500, 2),
        ids=(client.completions.create, dict(prompt=[list(range(100)), [1, 2, 3]], n=2), 103, 4),
        twenty=(client.completions.create, dict(prompt=[text(i, 100) for i in range(20)]), 2000, 20),
    )
    for name, (create, what, prompt_tokens, count) in many.items():
        whole = create(**ask, **what)
        said = [c.message.content if name == "chat" else c.text for c in whole.choices]
        check.that([c.index for c in whole.choices] == list(range(count)), f"{name}: choices {whole.choices}")
        check.that([len(t) for t in said] == [10] * count and len(set(said)) == count, f"{name}: answers {said}")
        usage = (whole.usage.prompt_tokens, whole.usage.completion_tokens, whole.usage.total_tokens)
        check.that(usage == (prompt_tokens, 10 * count, prompt_tokens + 10 * count), f"{name}: usage {whole.usage}")
        parts, ends, usage = [""] * count, [], None
        for chunk in create(**ask, **what, stream=True, stream_options=dict(include_usage=True)):
            for c in chunk.choices:
                check.that(c.index not in ends, f"{name}: choice {c.index} goes on after its end")
                parts[c.index] += (c.delta.content or "") if name == "chat" else c.text
                if c.finish_reason:
                    ends.append(c.index)
            usage = chunk.usage or usage
        check.that(parts == said, f"{name}: a stream says {parts}, the whole answer {said}")
        check.that(sorted(ends) == list(range(count)), f"{name}: choices that end: {ends}")
        check.that(usage is not None and usage.total_tokens == whole.usage.total_tokens, f"{name}: usage of the stream {usage}")
    cached = client.chat.completions.create(**ask, **many["chat"][1]).usage.prompt_tokens_details.cached_tokens
    check.that(cached >= 256, f"the prompt that was there is read from the cache: {cached} tokens")
    best = client.completions.create(**ask, prompt=one, n=2, best_of=4)
    check.that(len(best.choices) == 2 and best.usage.completion_tokens == 40, f"best_of: {best}")
    for what in (dict(n=129), dict(n=0), dict(n=3, best_of=2), dict(prompt=["a", ""]), dict(best_of=2, stream=True)):
        check.raises(openai.BadRequestError, f"{what}", lambda: client.completions.create(**{**ask, "prompt": "a", **what}))


def refusals(check, client):
    """What the endpoint refuses, as the kinds of errors that programs look for."""
    def chat(**changes):
        return lambda: client.chat.completions.create(**{**arguments("Hello", 4, "py-refused", stream=False), **changes})

    check.raises(openai.BadRequestError, "no messages", chat(messages=[]))
    check.raises(openai.BadRequestError, "a negative length", chat(max_completion_tokens=-1))
    check.raises(openai.BadRequestError, "a prompt longer than the context", chat(messages=[dict(role="user", content="x" * 2_000_000)]))
    check.raises(openai.NotFoundError, "an unknown model", chat(model="another"))
    check.raises(openai.NotFoundError, "an unknown route", lambda: client.embeddings.create(model=MODEL, input="x"))


def streams(check, client, count=8):
    """One stream after the other, timed."""
    for i in range(count):
        name, tokens = f"py-{i}", 40
        sent, times, usage, said = time.perf_counter(), [], None, ""
        for chunk in client.chat.completions.create(**arguments(text(i, 1500 + 100 * i), tokens, name)):
            if chunk.choices and chunk.choices[0].delta.content:
                times.append(time.perf_counter())
                said += chunk.choices[0].delta.content
            usage = chunk.usage or usage
        check.that(len(said) == tokens, f"{name}: {len(said)} tokens of a byte, not {tokens}")
        check.measured(name, tokens, sent, times, usage)


async def many(check, url, key, count=50):
    """Many streams at once, from one event loop, that begin one after the other."""
    async with openai.AsyncOpenAI(base_url=url, api_key=key, max_retries=0, timeout=60) as client:
        async def one(i):
            name, tokens = f"py-many-{i}", 60
            await asyncio.sleep(i * 0.05)
            sent, times, usage = time.perf_counter(), [], None
            async for chunk in await client.chat.completions.create(**arguments(text(f"{i} of many", 800), tokens, name)):
                if chunk.choices and chunk.choices[0].delta.content:
                    times.append(time.perf_counter())
                usage = chunk.usage or usage
            check.measured(name, tokens, sent, times, usage)

        for result in await asyncio.gather(*(one(i) for i in range(count)), return_exceptions=True):
            check.that(result is None, f"one of {count} streams: {result!r}")


def cancelled(check, client):
    """Streams that are closed early; the caller sees on /metrics that nothing runs any more."""
    for n in (1, 5):
        stream = client.chat.completions.create(n=n, **arguments(text("given up", 500), 5000, f"py-cancelled-{n}"))
        for count, _ in enumerate(stream):
            if count == 3 * n:
                break
        stream.close()


def faults(check, url, key):
    """An endpoint that wants a key and does things wrong, by session."""
    with openai.OpenAI(base_url=url, api_key="wrong", max_retries=0, timeout=20) as stranger:
        asked = arguments("Hello", 4, "py-key", stream=False)
        check.raises(openai.AuthenticationError, "a wrong key", lambda: stranger.chat.completions.create(**asked))
    with openai.OpenAI(base_url=url, api_key=key, max_retries=0, timeout=3) as client:
        def drain(session):
            asked = arguments("Hello", 50, f"py-{session}")
            asked["extra_headers"]["X-Correlation-ID"] = session
            return lambda: list(client.chat.completions.create(**asked))

        check.raises(openai.RateLimitError, "429", drain("status-429"))
        check.raises(openai.InternalServerError, "500", drain("status-500"))
        check.raises(openai.InternalServerError, "503", drain("status-503"))
        check.raises(openai.APIConnectionError, "a stall", drain("stall"))
        check.raises(Exception, "a dropped connection", drain("drop"))
        check.raises(Exception, "malformed events", drain("malformed"))
        said = "".join(c.choices[0].delta.content or "" for c in drain("fine")() if c.choices)
        check.that(len(said) == 50, f"a request that no rule matches: {said!r}")
    # The client tries again by itself when it may.
    with openai.OpenAI(base_url=url, api_key=key, max_retries=5, timeout=20) as client:
        asked = arguments("Hello", 4, "py-again", stream=False)
        asked["extra_headers"]["X-Correlation-ID"] = "sometimes-429"
        tokens = [client.chat.completions.create(**asked).usage.completion_tokens for _ in range(6)]
        check.that(tokens == [4] * 6, f"tries again after 429: {tokens}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("url")
    p.add_argument("--key", default="none")
    p.add_argument("--faults", action="store_true")
    args = p.parse_args()
    check = Checks()
    if args.faults:
        faults(check, args.url, args.key)
    else:
        with openai.OpenAI(base_url=args.url, api_key=args.key, max_retries=0, timeout=60) as client:
            answers(check, client)
            choices(check, client)
            refusals(check, client)
            streams(check, client)
            cancelled(check, client)
        asyncio.run(many(check, args.url, args.key))
    json.dump(dict(version=openai.__version__, checks=check.count, problems=check.problems, requests=check.requests), sys.stdout)


if __name__ == "__main__":
    main()
