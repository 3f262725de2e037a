#!/usr/bin/env python3
"""Real clients drive `servegrid serve`: the OpenAI clients for Python and JavaScript, AIPerf, guidellm and vllm bench serve.

  python3 tools/clients.py --servegrid ./servegrid

Each client has a server of its own, without errors on either side, and the TTFT and ITL that it measures must be within 5 % of
the simulated ones of the same requests; for AIPerf's fixed schedules also of `servegrid replay` of the same file. What a client and HTTP
add to TTFT is some ms, so the machine must have nothing else to do (--tries, --slack). Needs pyarrow and, for JavaScript, node and npm; the clients are installed into --folder, a new one by default, and an old one saves that time.
--only picks clients, --json writes all figures. Exit status 1 when something did not hold, with the reasons.
"""
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
import venv
import zipfile
from pathlib import Path

from serving import DEPLOYMENT, Server, arguments, means, run_checks

HERE = Path(__file__).parent / "clients"
# What guidellm needs but PyTorch, which has a stand-in.
GUIDELLM_NEEDS = """click~=8.4.0 culsans~=0.10.0 datasets>=5.0.1 eval_type_backport faker ftfy httpx[http2]<1.0.0 jinja2 loguru
more-itertools msgpack numpy protobuf pydantic-settings pyyaml rich sanic tabulate transformers uvloop websockets""".split()
# What `vllm bench serve` needs but vLLM itself, of which it has the sources.
VLLM = "vllm==0.33.0"
VLLM_NEEDS = """aiohttp cachetools cbor2 cloudpickle fastapi msgspec numpy openai pillow psutil pybase64 pyyaml pyzmq regex requests tqdm
transformers<5.21 urllib3""".split()
PACKAGES = {
    "openai": [["openai==3.57.0"]],
    "aiperf": [["aiperf==0.13.0"]],
    "guidellm": [["--no-deps", "guidellm==0.8.1"], GUIDELLM_NEEDS],
    "vllm": [VLLM_NEEDS],
}
GUIDELLM_METRICS = ["output_token_count", "time_to_first_token_ms", "inter_token_latency_ms"]
JAVASCRIPT = "openai@6.49.0"
KEY = "the right key"
SERVE = ["--model", "m", "--strict-model"]
FAULTS = [
    "status=429,session=status-429",
    "status=500,session=status-500",
    "status=503,session=status-503",
    "status=429,share=0.5,session=sometimes-429",
    "stall=60s,after_tokens=3,session=stall",
    "drop,after_tokens=5,session=drop",
    "malformed_sse,after_tokens=3,session=malformed",
]


def installed(folder, name):
    """The Python of a virtual environment with a client, made when it is not there: by uv, since pip takes minutes for AIPerf."""
    place = folder / name
    python = place / "bin" / "python"
    if not (place / "installed").exists():
        uv = folder / "uv" / "bin" / "uv"
        if not uv.exists():
            venv.create(folder / "uv", with_pip=True, clear=True)
            run([folder / "uv" / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "uv"], 120)
        venv.create(place, clear=True)
        for packages in PACKAGES[name]:
            run([uv, "pip", "install", "-q", "--python", python, *packages], 600)
        (place / "installed").touch()
    return python


def run(command, seconds, environment=None, folder=None):
    """A command's output; its failure ends the script."""
    done = subprocess.run([str(c) for c in command], timeout=seconds, capture_output=True, text=True, cwd=folder,
                          env={**os.environ, **(environment or {})})
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


TOKENIZER = "servegrid/bytes"


def hugging_face(folder, python):
    """The environment in which Hugging Face's libraries know a tokenizer of a token a byte, so that clients count as the server
    does: the end of a text, which AIPerf puts between blocks, is a byte too. It lies in their cache under a name, since AIPerf
    reads tokenizers from folders in only one of its processes. Returned with it is the tokenizer's folder."""
    cache = folder / "huggingface"
    model = cache / "hub" / f"models--{TOKENIZER.replace('/', '--')}"
    place = model / "snapshots" / "1"
    if not (place / "tokenizer_config.json").exists():
        place.mkdir(parents=True, exist_ok=True)
        run([python, "-c", """
import sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
vocabulary = {token: i for i, token in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.save(sys.argv[1])
""", place / "tokenizer.json"], 60)
        (place / "tokenizer_config.json").write_text(json.dumps(dict(
            tokenizer_class="PreTrainedTokenizerFast", eos_token="|", model_max_length=1_000_000)))
        (model / "refs").mkdir(exist_ok=True)
        (model / "refs" / "main").write_text("1")
    return dict(HF_HOME=str(cache), HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1"), place


def idle_again(verdict, server, what):
    """A client that has gone must have ended its request."""
    deadline = time.monotonic() + 5
    while (running := server.metric("vllm:num_requests_running")) != 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    verdict.expect(running == 0, f"{what}: {running} requests still run on the server after their client has gone")


def against_simulated(verdict, what, measured, simulated):
    """TTFT and ITL of requests by name, and their lengths, against their simulated lives."""
    missing = sorted(set(measured) - set(simulated))
    verdict.expect(not missing, f"{what}: the server knows nothing of {missing[:5]}")
    both = [(m, simulated[name]) for name, m in measured.items() if name in simulated]
    verdict.expect(both, f"{what}: nothing was measured")
    verdict.expect(all(m["output_tokens"] == s["output_tokens"] and s["terminal_status"] == "completed" for m, s in both),
                   f"{what}: lengths or ends differ between client and server")
    verdict.agree_latency(what, latency(m for m, _ in both), latency(s for _, s in both))


def openai_client(args, verdict, what, command, folder):
    """One of the OpenAI clients: everything on a good server, then what goes wrong on a bad one."""
    with Server(args.servegrid, args.folder / f"serve-{what}", *SERVE) as server:
        said = json.loads(run([*command, server.url + "/v1"], 120, folder=folder))
        idle_again(verdict, server, what)
    groups = {}
    for name, m in said["requests"].items():
        groups.setdefault("many at once" if "-many-" in name else "one by one", {})[name] = m
    simulated = server.simulated()
    for group, measured in groups.items():
        against_simulated(verdict, f"{what}, {group}", measured, simulated)
    rules = [flag for rule in FAULTS for flag in ("--fault", rule)]
    with Server(args.servegrid, args.folder / f"faults-{what}", *SERVE, "--api-key-env", "SERVE_KEY", *rules,
                environment={"SERVE_KEY": KEY}) as server:
        wrong = json.loads(run([*command, server.url + "/v1", "--key", KEY, "--faults"], 120, folder=folder))
    for problem in said["problems"] + wrong["problems"]:
        verdict.expect(False, f"{what}: {problem}")
    checks = said["checks"] + wrong["checks"]
    verdict.figure(f"{what}: version {said['version']}, {checks} checks, {len(said['requests'])} requests measured")


def check_openai_python(args, verdict):
    python = installed(args.folder, "openai")
    openai_client(args, verdict, "OpenAI for Python", [python, HERE / "openai_python.py"], args.folder)


def check_openai_javascript(args, verdict):
    if not shutil.which("npm"):
        verdict.figure("NOT CHECKED: the OpenAI client for JavaScript, for want of npm")
        return
    place = args.folder / "javascript"
    if not (place / "node_modules" / "openai").exists():
        place.mkdir(exist_ok=True)
        run(["npm", "install", "--silent", "--no-package-lock", "--no-save", "--prefix", place, JAVASCRIPT], 300)
    openai_client(args, verdict, "OpenAI for JavaScript", ["node", HERE / "openai.mjs"], place)


def made_trace(path, rows=60, seconds=12):
    """Prompts of 512-token blocks, some with a common beginning, and sessions of two turns, the second with what is new in it."""
    dice = random.Random(10)
    lines, own = [], 1000
    for i in range(rows):
        shared = dice.randrange(4)
        blocks = [shared] if dice.random() < 0.5 else []
        fresh = dice.randint(1, 3)
        tail = dice.randint(100, 500)
        blocks += range(own, own + fresh)
        own += fresh
        line = dict(timestamp=i * seconds * 1000 // rows, input_length=(len(blocks) - 1) * 512 + tail,
                    output_length=dice.randint(10, 60), hash_ids=blocks)
        if i % 10 == 9:
            line["session_id"] = f"s{i}"
        lines.append(line)
        if i % 10 == 9:
            lines.append(dict(session_id=f"s{i}", delay=300, input_length=612, output_length=20, hash_ids=[own, own + 1]))
            own += 2
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def aiperf(args, python, url, name, *flags):
    """AIPerf's records of the requests and what it wrote of the server's metrics."""
    place = args.folder / name
    shutil.rmtree(place, ignore_errors=True)
    environment, _ = hugging_face(args.folder, python)
    # Prompts of an earlier run are not what this one must send, and its files go where ours are.
    environment.update(AIPERF_DATASET_MMAP_CACHE_ENABLED="false", TMPDIR=str(args.folder))
    out = run([python.parent / "aiperf", "profile", "--model", "m", "--url", url, "--endpoint-type", "chat", "--streaming",
               "--use-server-token-count", "--tokenizer", TOKENIZER, "--extra-inputs", '{"ignore_eos":true}', "--random-seed", "1",
               "--ui", "none", "--no-gpu-telemetry", "--output-artifact-dir", place, *flags], 150, environment, args.folder)
    (args.folder / f"{name}.log").write_text(out)
    records = [json.loads(line) for line in (place / "profile_export.jsonl").read_text().splitlines()]
    summary = json.loads((place / "profile_export_aiperf.json").read_text())
    metrics = place / "server_metrics_export.json"
    return records, summary, json.loads(metrics.read_text())["metrics"] if metrics.exists() else {}


def of_record(record):
    value = {name: m["value"] for name, m in record["metrics"].items()}
    return dict(ttft_ms=value["time_to_first_token"], itl_ms=value.get("inter_token_latency"),
                input_tokens=value["input_sequence_length"], output_tokens=value["output_sequence_length"])


def latency(rows):
    """TTFT and ITL of each."""
    return [(row["ttft_ms"], row["itl_ms"]) for row in rows]


def check_aiperf(args, verdict):
    python = installed(args.folder, "aiperf")
    traces = {"made": made_trace(args.folder / "made.jsonl")}
    for path in args.trace:
        traces[path.stem] = path.resolve()
    for name, trace in traces.items():
        what = f"AIPerf, fixed schedule of {name}"
        rows = len(trace.read_text().splitlines())
        with Server(args.servegrid, args.folder / f"serve-aiperf-{name}", *SERVE) as server:
            records, summary, _ = aiperf(args, python, server.url, f"aiperf-{name}", *fixed_schedule(trace))
        measured = complete(verdict, what, records, rows)
        against_simulated(verdict, what, measured, server.simulated())
        replayed = replay(args, trace, name)
        verdict.expect(sorted((m["input_tokens"], m["output_tokens"]) for m in measured.values()) ==
                       sorted((r["input_length"], r["output_tokens"]) for r in replayed), f"{what}: lengths differ from those of replay")
        verdict.agree_latency(what, latency(measured.values()), latency(replayed), against="replayed")
        read = summary.get("overall_usage_prompt_cache_read_pct", {}).get("avg", 0)
        reused = 100 * sum(r["reused_input_tokens"] for r in replayed) / sum(r["input_length"] for r in replayed)
        verdict.figure(f"{what}: {read:.1f} % of the prompts read from the cache, {reused:.1f} % replayed")
        verdict.expect(abs(read - reused) < 1, f"{what}: {read:.1f} % read from the cache, {reused:.1f} % replayed")


def check_aiperf_concurrency(args, verdict):
    python = installed(args.folder, "aiperf")
    what, requests, tokens = "AIPerf, 8 at a time", 64, 48
    with Server(args.servegrid, args.folder / "serve-aiperf-concurrency", *SERVE) as server:
        records, _, metrics = aiperf(args, python, server.url, "aiperf-concurrency", "--concurrency", "8",
                                     "--request-count", str(requests), "--isl", "1200", "--isl-stddev", "300",
                                     "--osl", str(tokens), "--osl-stddev", "0")
    against_simulated(verdict, what, complete(verdict, what, records, requests), server.simulated())
    scraped(verdict, metrics, requests, requests * tokens)


def fixed_schedule(trace):
    """The flags with which AIPerf sends a trace when it says."""
    return ["--input-file", trace, "--custom-dataset-type", "mooncake_trace", "--fixed-schedule", "--fixed-schedule-auto-offset"]


def complete(verdict, what, records, rows):
    """AIPerf's measurements by name, none of them failed."""
    failed = [r["error"] for r in records if r.get("error")]
    verdict.expect(not failed, f"{what}: {len(failed)} requests failed, the first with {failed[:1]}")
    verdict.expect(len(records) == rows, f"{what}: {len(records)} of {rows} requests")
    return {r["metadata"]["x_request_id"]: of_record(r) for r in records if not r.get("error")}


def scraped(verdict, metrics, requests, tokens):
    """What AIPerf scraped of the server's metrics beside the load."""
    wanted = """num_requests_running num_requests_waiting kv_cache_usage_perc prefix_cache_hits prefix_cache_queries prompt_tokens
                generation_tokens request_success time_to_first_token_seconds e2e_request_latency_seconds"""
    missing = [name for name in wanted.split() if f"vllm:{name}" not in metrics]
    verdict.expect(not missing, f"AIPerf did not find {missing} among the server's metrics")
    for name, total in (("vllm:request_success", requests), ("vllm:generation_tokens", tokens)):
        counted = sum(series["stats"].get("total", 0) for series in metrics.get(name, {}).get("series", []))
        verdict.expect(counted == total, f"AIPerf saw {name} grow by {counted}, not {total}")
    verdict.figure(f"AIPerf scraped {len(metrics)} of the server's metrics")


def replay(args, trace, name):
    """The simulated requests of a trace as AIPerf takes it: the turns of a session are what is new in them."""
    out = args.folder / f"replay-{name}.jsonl"
    deployment = [flag for flag in DEPLOYMENT if flag not in ("--tokenizer", "bytes")]
    run([args.servegrid, "replay", trace, "--trace-format", "mooncake-delta", *deployment, "--report-jsonl", out,
         "--report-json", args.folder / "replay.json"], 60)
    return [json.loads(line) for line in out.read_text().splitlines()]


def check_guidellm(args, verdict):
    python = installed(args.folder, "guidellm")
    environment, tokenizer = hugging_face(args.folder, python)
    environment.update(PYTHONPATH=str(HERE / "stand_in"), USE_TORCH="0", PYTHONDONTWRITEBYTECODE="1")
    profiles = {"8 at a time": ("kind=concurrent,streams=8", 48), "5 a second": ("kind=constant,rate=5", 40)}
    for name, (profile, requests) in profiles.items():
        what = f"guidellm, {name}"
        out = args.folder / f"guidellm-{requests}.json"
        with Server(args.servegrid, args.folder / f"serve-guidellm-{requests}", *SERVE) as server:
            run([python.parent / "guidellm", "run", "--backend", f"kind=openai_http,target={server.url},model=m", "--profile", profile,
                 "--constraint", f"kind=max_requests,count={requests}", "--tokenizer", f"kind=hf_auto,model={tokenizer}",
                 "--data", "kind=synthetic_text,prompt_tokens=1200,output_tokens=48", "--output", f"kind=json,path={out}",
                 "--disable-console"], 120, environment, args.folder)
        [benchmark] = json.loads(out.read_text())["benchmarks"]
        made = benchmark["scheduler_metrics"]["requests_made"]
        simulated = [r for r in server.simulated().values() if r["terminal_status"] == "completed"]
        # Its count of requests to make may end it one short.
        verdict.expect(made["errored"] == 0 and len(simulated) == made["successful"] >= requests - 1,
                       f"{what}: requests {made}, not {requests} successful, and {len(simulated)} completed by the server")
        mean = {name: metric["successful"]["mean"] for name, metric in benchmark["metrics"].items() if name in GUIDELLM_METRICS}
        verdict.expect(mean["output_token_count"] == 48, f"{what}: {mean['output_token_count']} tokens a request, not 48")
        verdict.agree_latency(what, [(mean["time_to_first_token_ms"], mean["inter_token_latency_ms"])], latency(simulated))


def vllm_sources(folder):
    """The folder with the Python sources of vLLM, taken from its package of 0.3 GB."""
    place = folder / "vllm-sources"
    if not (place / "vllm").exists():
        run([folder / "uv" / "bin" / "python", "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--dest", place, VLLM], 600)
        [package] = place.glob("*.whl")
        with zipfile.ZipFile(package) as files:
            files.extractall(place, [name for name in files.namelist() if name.startswith("vllm/") and name.endswith(".py")])
        package.unlink()
    return place


def vllm_bench(args, verdict, number, what, requests, tokens, prompt, flags):
    """Runs `vllm bench serve` against a server of its own; what it measured and what was simulated, request by request."""
    python = installed(args.folder, "vllm")
    sources = vllm_sources(args.folder)
    environment, tokenizer = hugging_face(args.folder, python)
    environment.update(USE_TORCH="0", PYTHONDONTWRITEBYTECODE="1")
    out = args.folder / f"vllm-{number}.json"
    with Server(args.servegrid, args.folder / f"serve-vllm-{number}", *SERVE) as server:
        run([python, HERE / "vllm_bench.py", sources, "--base-url", server.url, "--model", "m", "--tokenizer", tokenizer, "--ignore-eos",
             "--dataset-name", "random", "--random-input-len", prompt, "--random-output-len", tokens, "--num-prompts", requests,
             "--seed", "7", "--num-warmups", "0", "--ready-check-timeout-sec", "0", "--percentile-metrics", "ttft,tpot", "--save-result",
             "--save-detailed", "--request-id-prefix", "r", "--result-dir", out.parent, "--result-filename", out.name, *flags],
            180, environment, args.folder)
    said = json.loads(out.read_text())
    simulated = server.simulated()
    completed = sum(r["terminal_status"] == "completed" for r in simulated.values())
    verdict.expect(said["failed"] == 0 and said["completed"] == completed == len(simulated) == requests,
                   f"{what}: {said['completed']} completed, {said['failed']} failed, of {len(simulated)} the server completed {completed}")
    measured = {f"r{i}": dict(ttft_ms=1000 * ttft, itl_ms=1000 * sum(itls) / (length - 1), output_tokens=length, input_tokens=asked)
                for i, (ttft, itls, length, asked) in enumerate(zip(said["ttfts"], said["itls"], said["output_lens"], said["input_lens"]))}
    verdict.expect(measured.keys() == simulated.keys() and all(m["input_tokens"] == simulated[name]["input_length"] for name, m in measured.items()),
                   f"{what}: lengths of prompts differ between client and server")
    return measured, simulated


def check_vllm(args, verdict):
    """TTFT is compared where it is long beside what HTTP and the client add, which is told in ms of every way; where it is short
    that is all that is told."""
    ways = [("completions, 8 at a time", True, 48, 1200, ["--backend", "openai", "--endpoint", "/v1/completions", "--max-concurrency", "8"]),
            ("chats of 8,000 tokens, one every 2 s", True, 20, 8000,
             ["--backend", "openai-chat", "--endpoint", "/v1/chat/completions", "--request-rate", "0.5"]),
            ("chats of 1,200 tokens, 5 a second", False, 48, 1200,
             ["--backend", "openai-chat", "--endpoint", "/v1/chat/completions", "--request-rate", "5"])]
    for number, (name, long, requests, prompt, flags) in enumerate(ways):
        what = f"vllm bench serve, {name}"
        measured, simulated = vllm_bench(args, verdict, number, what, requests, 48, prompt, flags)
        added = sorted(m["ttft_ms"] - simulated[name]["ttft_ms"] for name, m in measured.items() if name in simulated)
        verdict.figure(f"{what}: to TTFT the client adds {statistics.median(added):.1f} ms in the middle, {added[len(added) * 9 // 10]:.1f} ms at 90 %")
        if long:
            against_simulated(verdict, what, measured, simulated)
        else:
            columns = means(latency(measured.values())), means(latency(simulated.values()))
            verdict.agree(f"{what}: mean ITL in ms", *(column["ITL"] for column in columns), 0.05)
            verdict.figure(f"{what}: mean TTFT in ms: {columns[0]['TTFT']:.2f} measured, {columns[1]['TTFT']:.2f} simulated")


CHECKS = {"python": check_openai_python, "javascript": check_openai_javascript, "aiperf": check_aiperf,
          "aiperf-concurrency": check_aiperf_concurrency, "guidellm": check_guidellm, "vllm": check_vllm}


def main():
    p = arguments(__doc__, CHECKS, "where the clients are installed and everything is written")
    p.add_argument("--trace", type=Path, action="append", default=[], help="one more mooncake trace for AIPerf's fixed schedule")
    args = p.parse_args()
    run_checks(args, {name: CHECKS[name] for name in args.only}, "clients-")


if __name__ == "__main__":
    main()
