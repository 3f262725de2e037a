#!/usr/bin/env python3
"""`servegrid live` against `servegrid serve`: does it send what it should, when it should, and say what came of it?

  python3 tools/live.py --servegrid ./servegrid

Small variants by default, within two minutes; --full runs those with the figures of the docs: 500 requests/s, and 10,000 streams
at once. --soak SECONDS only runs that long and fits a line to the memory of both processes. --aiperf FOLDER compares with AIPerf,
which tools/clients.py installed there. Needs pyarrow. --only picks checks, --json writes all figures. Exit status 1 when
something did not hold, with the reasons.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import clients
from serving import DEPLOYMENT, Server, arguments, peak_mb, rss_mb, run_checks

KEY_NAME = "LIVE_KEY"


def fixed(prefill_ms, decode_ms, workers=1, seqs=256, blocks=1_000_000):
    """The flags of a deployment whose passes take a fixed time."""
    engine = dict(max_num_seqs=seqs, num_gpu_blocks=blocks, max_num_batched_tokens=1_000_000)
    return ["--timing", json.dumps(dict(source="fixed", prefill_ms=prefill_ms, decode_ms=decode_ms)), "--num-workers", str(workers),
            "--extra-engine-args", json.dumps(engine), "--tokenizer", "bytes"]


def regular(path, count, per_second, input_tokens, output_tokens, sessions=None):
    """A trace of equal requests at a steady rate, the first at 0; sessions names one for each request."""
    with open(path, "w") as f:
        for i in range(count):
            row = dict(timestamp=i * 1000 / per_second, input_length=input_tokens, output_length=output_tokens, hash_ids=[i])
            if sessions:
                row["session_id"] = sessions[i]
            f.write(json.dumps(row) + "\n")
    return path


class Live:
    """One `servegrid live`, with what it wrote."""

    def __init__(self, args, name, trace, url, *flags, environment=None):
        self.folder = args.folder / name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.command = [args.servegrid, "live", str(trace), "--url", url, "--model", "m", "--tokenizer", "bytes",
                        "--output", str(self.folder), *flags]
        self.log = tempfile.TemporaryFile(mode="w+")
        self.peak = 0.0
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log, env={**os.environ, **(environment or {})})
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while self.process.poll() is None:
            self.peak = max(self.peak, peak_mb(self.process.pid))
            time.sleep(0.1)

    def wait(self, seconds, codes=(0,)):
        """The rows of its requests, once it has ended with one of the codes."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
            raise SystemExit(f"{' '.join(self.command)} still ran after {seconds} s:\n{self.said()}")
        if self.process.returncode not in codes:
            raise SystemExit(f"{' '.join(self.command)} ended with {self.process.returncode}, not {codes}:\n{self.said()}")
        return self.rows()

    def rows(self):
        import pyarrow.parquet

        return pyarrow.parquet.read_table(self.folder / "requests.parquet").to_pylist()

    def heap_mb(self):
        """What its heap had after the last collection, in MiB, of one that runs with GODEBUG=gctrace=1."""
        size = os.fstat(self.log.fileno()).st_size
        text = os.pread(self.log.fileno(), 10_000, max(0, size - 10_000)).decode(errors="replace")
        collected = re.findall(r"^gc \d+ @.* \d+->\d+->(\d+) MB,", text, re.MULTILINE)
        return float(collected[-1]) if collected else 0.0

    def said(self):
        self.log.seek(0)
        return self.log.read()[-4000:]


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def all_completed(verdict, what, rows, count):
    """Everything that the trace has was sent and answered, each with the length that it should have."""
    ends = collections.Counter(r["terminal_status"] for r in rows)
    verdict.expect(ends == {"completed": count}, f"{what}: {dict(ends)}, not {count} completed")
    wrong = [r["uuid"] for r in rows if r["output_tokens"] != r["output_length"]]
    verdict.expect(not wrong, f"{what}: {len(wrong)} answers have another length than asked, such as {wrong[:3]}")
    wrong = [r["uuid"] for r in rows if r["prompt_tokens"] != r["input_length"]]
    verdict.expect(not wrong, f"{what}: {len(wrong)} prompts have another length at the server, such as {wrong[:3]}")


def check_trace(args, verdict):
    """A trace, and what the client measured against what was simulated, request by request; and against AIPerf."""
    trace = clients.made_trace(args.folder / "made.jsonl", 100 if args.full else 60, 20 if args.full else 12)
    count = len(trace.read_text().splitlines())
    with Server(args.servegrid, args.folder / "serve-trace", *clients.SERVE) as server:
        rows = Live(args, "trace", trace, server.url, "--trace-format", "mooncake-delta").wait(90)
    what = "a trace"
    all_completed(verdict, what, rows, count)
    simulated = server.simulated()
    verdict.expect(set(simulated) == {r["uuid"] for r in rows}, f"{what}: the server names other requests than the client")
    verdict.agree_latency(what, clients.latency(rows), clients.latency(simulated.values()), 0.03)
    reused = [(r["reused_input_tokens"], simulated[r["uuid"]]["reused_input_tokens"]) for r in rows if r["uuid"] in simulated]
    verdict.expect(all(a == b for a, b in reused), f"{what}: tokens from the cache differ between client and server")
    if args.aiperf is None:
        return
    args.aiperf = args.aiperf.resolve()
    python = clients.installed(args.aiperf, "aiperf")
    with Server(args.servegrid, args.folder / "serve-aiperf", *clients.SERVE) as server:
        records, _, _ = clients.aiperf(argparse.Namespace(folder=args.aiperf), python, server.url, "live-aiperf",
                                       *clients.fixed_schedule(trace))
    measured = clients.complete(verdict, "AIPerf", records, count)
    verdict.agree_latency(what, clients.latency(rows), clients.latency(measured.values()), 0.03, against="by AIPerf")


def check_schedule(args, verdict):
    """Requests leave when they should."""
    per_second, seconds = 500, 20 if args.full else 4
    trace = regular(args.folder / "schedule.jsonl", per_second * seconds, per_second, 64, 4)
    with Server(args.servegrid, args.folder / "serve-schedule", *clients.SERVE, deployment=fixed(20, 10, workers=4)) as server:
        rows = Live(args, "schedule", trace, server.url).wait(60 + seconds)
    what = f"{per_second} requests/s"
    all_completed(verdict, what, rows, per_second * seconds)
    lags = [r["schedule_lag_ms"] for r in rows]
    verdict.figure(f"{what}: schedule lag {quantile(lags, .5):.2f} ms p50, {quantile(lags, .99):.2f} ms p99, {max(lags):.2f} ms at most")
    most = 5 * verdict.slack
    verdict.expect(quantile(lags, .99) <= most, f"{what}: schedule lag p99 is {quantile(lags, .99):.2f} ms, more than {most:g} ms", late=True)


def check_streams(args, verdict):
    """Many streams at once, in little memory."""
    count, tokens = (10_000, 50) if args.full else (2_000, 12)
    trace = regular(args.folder / "streams.jsonl", count, 500, 100, tokens)
    peak = dict(serve=0.0, running=0)
    with Server(args.servegrid, args.folder / "serve-streams", *clients.SERVE, "--max-requests", str(count + 100),
                deployment=fixed(100, 1000, seqs=count)) as server:
        client = Live(args, "streams", trace, server.url)
        while client.process.poll() is None:
            peak["running"] = max(peak["running"], server.metric("vllm:num_requests_running") or 0)
            time.sleep(1)
        peak["serve"] = peak_mb(server.process.pid)
        rows = client.wait(1)
    what = f"{count} streams"
    all_completed(verdict, what, rows, count)
    verdict.figure(f"{what}: {peak['running']:.0f} at once, live holds {client.peak:.0f} MiB at most, serve {peak['serve']:.0f} MiB")
    verdict.expect(peak["running"] >= count * 0.99, f"{what}: only {peak['running']:.0f} ran at once")
    verdict.expect(client.peak <= 1000, f"{what}: live holds {client.peak:.0f} MiB, more than 1 GB")
    simulated = server.simulated().values()
    mean = lambda column, of: statistics.fmean(r[column] for r in of)
    # All streams have a token at the same moment, which takes the machine longer to send than a first token waits otherwise.
    verdict.figure(f"{what}: mean TTFT {mean('ttft_ms', rows):.0f} ms measured, {mean('ttft_ms', simulated):.0f} ms simulated")
    verdict.agree(f"{what}: mean ITL in ms", mean("itl_ms", rows), mean("itl_ms", simulated), 0.05)


MADE_TRACES = Path(__file__).parent.parent / "cmd/servegrid/testdata/golden/traces"
ONLINE = {
    "round robin": ["--router-mode", "round_robin"],
    "KV router": ["--router-mode", "kv_router"],
    "closed loop": ["--replay-concurrency", "8"],
    "prefill and decode": ["--num-prefill-workers", "1", "--num-decode-workers", "2", "--prefill-engine-args", "{}", "--decode-engine-args", "{}"],
}


def check_online(args, verdict):
    """The same requests in real time and simulated, which fare the same to the last digit: those of the made traces with round
    robin, and of a small trace in each way, all at once."""
    runs = [(trace, "round robin") for trace in args.trace or sorted(MADE_TRACES.glob("*.jsonl"))]
    runs += [(clients.made_trace(args.folder / "small.jsonl", 60, 12), way) for way in ONLINE]

    def replayed(trace, way, mode, *flags):
        out = args.folder / f"{trace.stem}-{way.replace(' ', '-')}-{mode}"
        workers = [] if "--num-prefill-workers" in ONLINE[way] else ["--num-workers", "2"]
        clients.run([args.servegrid, "replay", trace, "--replay-mode", mode, *flags, *DEPLOYMENT[:2], *workers, *ONLINE[way],
                     "--report-jsonl", f"{out}.jsonl", "--report-json", f"{out}.json"], 1000)
        return [json.loads(line) for line in Path(f"{out}.jsonl").read_text().splitlines()], json.loads(Path(f"{out}.json").read_text())

    with concurrent.futures.ThreadPoolExecutor(len(runs)) as pool:
        onlines = list(pool.map(lambda run: replayed(*run, "online", "--online-speedup", str(args.online_speedup)), runs))
    for (trace, way), (online, report) in zip(runs, onlines):
        offline, _ = replayed(trace, way, "offline")
        what = f"online, {trace.stem}, {way}"
        by_number = {r["request"]: r for r in offline}
        differ = [r["request"] for r in online if r != by_number.get(r["request"])]
        verdict.figure(f"{what}: {len(differ)} of {len(offline)} requests differ from those offline; they were sent "
                       f"{report['median_schedule_lag_ms']:.2f} ms (p50), {report['p99_schedule_lag_ms']:.2f} ms (p99) of simulated time late")
        verdict.expect(len(online) == len(offline) and not differ, f"{what}: {len(online)} requests, {len(offline)} offline; {differ[:5]} differ")


def check_faults(args, verdict):
    """What goes wrong is counted under its name, and the rest completes."""
    kinds = {"good": "completed", "429": "overloaded", "503": "overloaded", "500": "server_status", "drop": "dropped",
             "malformed": "malformed", "stall": "timeout"}
    sessions = [kind for kind in kinds for _ in range(5)]
    names = [f"{kind}-{i}" for i, kind in enumerate(sessions)]
    trace = regular(args.folder / "faults.jsonl", len(names), 50, 200, 40, names)
    rules = {"429": "status=429", "503": "status=503", "500": "status=500", "drop": "drop,after_tokens=5",
             "malformed": "malformed_sse,after_tokens=5", "stall": "stall=60s,after_tokens=5"}
    faults = [flag for kind, rule in rules.items() for flag in ("--fault", f"{rule},session={kind}-*")]
    environment = {KEY_NAME: "right"}
    with Server(args.servegrid, args.folder / "serve-faults", *clients.SERVE, "--api-key-env", KEY_NAME, *faults,
                environment=environment, deployment=fixed(20, 10)) as server:
        rows = Live(args, "faults", trace, server.url, "--api-key-env", KEY_NAME, "--token-timeout", "2s",
                    environment=environment).wait(30, codes=(1,))
        stranger = Live(args, "expired", trace, server.url, "--api-key-env", KEY_NAME,
                        environment={KEY_NAME: "expired"}).wait(30, codes=(1,))
    for row, kind in zip(sorted(rows, key=lambda r: r["request"]), sessions):
        got = row["error_kind"] or row["terminal_status"]
        verdict.expect(got == kinds[kind], f"faults: {row['session_id']} ended as {got}, not {kinds[kind]}: {row['error']}")
    verdict.figure(f"faults: {dict(collections.Counter(r['error_kind'] or 'completed' for r in rows))}")
    wrong = collections.Counter(r["error_kind"] for r in stranger)
    verdict.expect(wrong == {"unauthorized": len(names)}, f"an expired key: {dict(wrong)}, not {len(names)} unauthorized")


def check_death(args, verdict):
    """A server that is killed or stops in the middle, and Ctrl-C: everything ends soon, and nothing is lost."""
    trace = regular(args.folder / "death.jsonl", 200, 50, 200, 200)
    ways = (("kill -9 of the server", signal.SIGKILL, (1,)), ("SIGSTOP of the server", signal.SIGSTOP, (1,)), ("Ctrl-C", None, (130,)))
    for what, how, codes in ways:
        with Server(args.servegrid, args.folder / "serve-death", *clients.SERVE, deployment=fixed(20, 20)) as server:
            client = Live(args, "death", trace, server.url, "--token-timeout", "2s", "--first-token-timeout", "2s",
                          "--grace", "1s")
            time.sleep(2.5)
            started = time.monotonic()
            if how is None:
                client.process.send_signal(signal.SIGINT)
            else:
                server.process.send_signal(how)
            rows = client.wait(30, codes)
            took = time.monotonic() - started
            if how is not None:
                server.kill()
                server.start()  # for the end of the with block
        ends = collections.Counter(r["error_kind"] or r["terminal_status"] for r in rows)
        verdict.figure(f"{what}: {dict(ends)}, {took:.1f} s later all had ended")
        expected = {signal.SIGKILL: {"dropped", "connect"}, signal.SIGSTOP: {"timeout"}, None: {"cancelled", "unfinished"}}[how]
        verdict.expect(set(ends) <= expected | {"completed"} and set(ends) & expected, f"{what}: {dict(ends)}, not {expected}")
        verdict.expect(len(rows) == 200 or how is None and len(rows) >= 100, f"{what}: {len(rows)} of 200 requests are known")


class Strangers(threading.Thread):
    """Clients that misbehave, two a second, until they are told to stop: each leaves in the middle in another way."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.stopped, self.count = port, threading.Event(), 0

    def run(self):
        prompt = dict(model="m", stream=True, max_tokens=100, messages=[dict(role="user", content="Who is there? " * 20)])
        body = json.dumps(prompt).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: serve\r\nContent-Length: %d\r\n\r\n" % len(body)
        parts = {"no head": b"", "half a head": head[:30], "half a body": head + body[:50], "in the stream": head + body,
                 "half closed": head + body, "does not read": head + body}
        held = collections.deque()
        while not self.stopped.wait(0.5):
            what = list(parts)[self.count % len(parts)]
            self.count += 1
            try:
                with contextlib.suppress(OSError):
                    s = socket.create_connection(("127.0.0.1", self.port), timeout=5)
                    held.append(s)
                    s.sendall(parts[what])
                    if what == "half closed":
                        s.shutdown(socket.SHUT_WR)
                    elif what == "in the stream":
                        s.recv(500)
            finally:
                while len(held) > 20:
                    held.popleft().close()
        for s in held:
            s.close()


Sample = collections.namedtuple("Sample", "serve_mb live_mb live_heap_mb serve_goroutines serve_files live_files")


def check_soak(args, verdict):
    """Minutes or hours of load, of what goes wrong and of clients that misbehave: nothing grows, and nothing is lost."""
    per_second, tokens = 30, 50
    expected = {"dropped", "malformed", "overloaded", "server_status", "timeout"}
    rules = ["drop,after_tokens=5,share=0.01", "malformed_sse,after_tokens=5,share=0.01", "status=429,share=0.01",
             "status=500,share=0.01", "stall=60s,after_tokens=5,share=0.005"]
    faults = [flag for rule in rules for flag in ("--fault", rule)]
    trace = regular(args.folder / "soak.jsonl", per_second * args.soak, per_second, 400, tokens)
    every = max(1, min(30, args.soak / 40))
    deployment = fixed(20, 10, workers=2, blocks=5_000)  # whose KV cache is full soon
    with Server(args.servegrid, args.folder / "serve-soak", *clients.SERVE, *faults, deployment=deployment) as server:
        client = Live(args, "soak", trace, server.url, "--token-timeout", "10s", "--quiet", environment=dict(GODEBUG="gctrace=1"))
        strangers = Strangers(server.port)
        strangers.start()
        started, samples = time.monotonic(), []
        with open(args.folder / "soak.csv", "w") as log:
            print("seconds", *Sample._fields, sep=",", file=log)
            while client.process.poll() is None:
                sample = sampled(server, client)
                if client.process.poll() is None and time.monotonic() - started < args.soak:  # then it only writes its files
                    samples.append((time.monotonic() - started, sample))
                    print(f"{samples[-1][0]:.0f}", *(f"{v:.1f}" for v in sample), sep=",", file=log, flush=True)
                time.sleep(every)
        strangers.stopped.set()
        strangers.join()
        rows = client.wait(1, codes=(1,))
        clients.idle_again(verdict, server, "soak")
    what = f"soak of {args.soak} s at {per_second} requests/s"
    ends = collections.Counter(r["error_kind"] or r["terminal_status"] for r in rows)
    verdict.figure(f"{what}, and {strangers.count} clients that misbehaved: {dict(ends)}")
    verdict.expect(len(rows) == per_second * args.soak, f"{what}: {len(rows)} of {per_second * args.soak} requests are known")
    verdict.expect(set(ends) == expected | {"completed"}, f"{what}: {dict(ends)}, not completed and {expected}")
    short = [r["uuid"] for r in rows if r["terminal_status"] == "completed" and r["output_tokens"] != tokens]
    verdict.expect(not short, f"{what}: {len(short)} answers are not {tokens} tokens long, such as {short[:3]}")
    live_mb = [s.live_mb for _, s in samples]
    verdict.figure(f"{what}: live holds {live_mb[len(live_mb) // 3]:.0f} MiB after a third, {live_mb[-1]:.0f} at the end, garbage included")
    for name in ("serve_mb", "live_heap_mb", "serve_goroutines", "serve_files", "live_files"):  # both keep what they know in files
        flat(verdict, what, args.soak, [(t, getattr(s, name)) for t, s in samples], name)


def flat(verdict, what, seconds, samples, name):
    """What a process holds must not grow after the first third, which fills pools and caches."""
    settled = [(t, value) for t, value in samples if t > seconds / 3]
    slope = statistics.linear_regression(*zip(*settled)).slope
    mean = statistics.fmean(value for _, value in settled)
    grown = slope * seconds * 2 / 3
    verdict.figure(f"{what}: {name} {mean:.0f} on average, {min(v for _, v in settled):.0f} to {max(v for _, v in settled):.0f}, "
                   f"{slope * 3600:+.1f} an hour")
    allowed = max(8, 0.05 * mean)
    verdict.expect(grown <= allowed, f"{what}: {name} grew by {grown:.0f}, more than {allowed:.0f}")


def sampled(server, client):
    """What both processes hold now."""
    files = [len(os.listdir(f"/proc/{pid}/fd")) if os.path.exists(f"/proc/{pid}/fd") else 0
             for pid in (server.process.pid, client.process.pid)]
    return Sample(rss_mb(server.process.pid), rss_mb(client.process.pid), client.heap_mb(), server.metric("go_goroutines") or 0, *files)


CHECKS = {"trace": check_trace, "schedule": check_schedule, "streams": check_streams, "online": check_online,
          "faults": check_faults, "death": check_death}


def main():
    p = arguments(__doc__, CHECKS, "where everything is written")
    p.add_argument("--trace", type=Path, action="append", default=[], help="traces for online against offline, instead of all made ones")
    p.add_argument("--online-speedup", type=float, default=20, help="simulated seconds that pass in a real one for online")
    p.add_argument("--aiperf", type=Path, help="the folder of tools/clients.py")
    p.add_argument("--full", action="store_true")
    p.add_argument("--soak", type=int, metavar="SECONDS", help="at least 300, since pools and caches fill in the first minutes")
    args = p.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    run_checks(args, {"soak": check_soak} if args.soak else {name: CHECKS[name] for name in args.only}, "live-")


if __name__ == "__main__":
    main()
