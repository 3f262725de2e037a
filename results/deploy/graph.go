package deploy

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/servegrid/servegrid/planner"
	"github.com/servegrid/servegrid/simcore"
	"github.com/servegrid/servegrid/simcore/perfmodel/catalogue"
	"github.com/servegrid/servegrid/simcore/router"
)

// What a graph deployment names: the registry and release of Dynamo's containers, and the secret with the token for Hugging Face.
const (
	registry    = "nvcr.io/nvidia/ai-dynamo/"
	release     = "1.3.1"
	tokenSecret = "hf-token-secret"
)

// sessionAffinitySeconds is how long Dynamo's router remembers the worker of a session. The simulated one never forgets.
const sessionAffinitySeconds = 86400

// graph is a DynamoGraphDeployment (nvidia.com/v1alpha1): a frontend with the router, a service for each pool of workers, and the
// planner, if there is one.
func (d *deployment) graph() []byte {
	var y yamlWriter
	y.comment(0, fmt.Sprintf("%s, deployed with Dynamo %s. Each setting of servegrid stands behind what it became.", d.Name, release))
	y.comment(0, fmt.Sprintf("It needs Dynamo's operator, and a secret %s with HF_TOKEN where the model asks for one.", tokenSecret))
	y.entry(0, "apiVersion", "nvidia.com/v1alpha1", "")
	y.entry(0, "kind", "DynamoGraphDeployment", "")
	y.line(0, "metadata:")
	y.entry(1, "name", kubernetesName(d.Name), "")
	y.line(0, "spec:")
	y.line(1, "services:")
	d.frontend(&y)
	if d.Config.Planner.Policy == planner.PolicyDynamo {
		d.planner(&y)
	}
	for _, w := range d.workers {
		d.service(&y, w)
	}
	return y.Bytes()
}

// frontend writes the service that takes requests and routes them.
func (d *deployment) frontend(y *yamlWriter) {
	y.line(2, "Frontend:")
	y.entry(3, "componentType", "frontend", "")
	y.entry(3, "replicas", 1, "")
	y.entry(3, "envFromSecret", tokenSecret, "")
	container(y, d.backend.image, "dynamo.frontend", d.routerArguments())
}

// routerArguments are the flags of the frontend for routing.
func (d *deployment) routerArguments() []argument {
	r := d.Config.Router
	modes := map[string]string{
		router.PolicyRoundRobin: "round-robin", router.PolicyKVRouter: "kv", router.PolicyLeastLoaded: "least-loaded",
		router.PolicyPowerOfTwo: "power-of-two", router.PolicySessionAffinity: "least-loaded", router.PolicyPrefixAffinity: "round-robin",
	}
	args := []argument{{"--router-mode", modes[r.Policy], "router.policy"}}
	if r.Policy == router.PolicySessionAffinity {
		args = append(args, argument{"--router-session-affinity-ttl-secs", strconv.Itoa(sessionAffinitySeconds), "router.policy"})
	}
	if r.Policy == router.PolicyKVRouter {
		args = append(args, d.kvRouterArguments(r)...)
	}
	return args
}

// kvRouterArguments are the flags of the KV router that are not at their defaults, which are the simulator's too.
func (d *deployment) kvRouterArguments(r router.Config) []argument {
	standard := router.DefaultConfig()
	scale, credit := r.PrefillLoadScale, r.OverlapScoreCredit
	if r.OverlapScoreWeight != router.Unset { // the old name of both
		scale = r.OverlapScoreWeight
		if scale == 0 {
			credit = 0
		}
	}
	var args []argument
	for _, n := range []struct {
		flag            string
		value, standard float64
		key             string
	}{
		{"--router-kv-overlap-score-credit", credit, standard.OverlapScoreCredit, "overlap_score_credit"},
		{"--router-kv-overlap-score-credit-decay", r.OverlapScoreCreditDecay, standard.OverlapScoreCreditDecay, "overlap_score_credit_decay"},
		{"--router-prefill-load-scale", scale, standard.PrefillLoadScale, "prefill_load_scale"},
		{"--router-host-cache-hit-weight", r.HostCacheHitWeight, standard.HostCacheHitWeight, "host_cache_hit_weight"},
		{"--router-disk-cache-hit-weight", r.DiskCacheHitWeight, standard.DiskCacheHitWeight, "disk_cache_hit_weight"},
		{"--router-temperature", r.RouterTemperature, standard.RouterTemperature, "router_temperature"},
		{"--router-queue-threshold", r.RouterQueueThreshold, standard.RouterQueueThreshold, "router_queue_threshold"},
	} {
		value := yamlScalar(n.value)
		if n.key == "router_queue_threshold" && n.value == router.Unset {
			value = "None"
		}
		if n.value != n.standard {
			args = append(args, argument{n.flag, value, "router." + n.key})
		}
	}
	for _, s := range []struct {
		flag string
		on   bool
		key  string
	}{
		{"--no-router-track-active-blocks", r.RouterTrackActiveBlocks, "router_track_active_blocks"},
		{"--no-router-assume-kv-reuse", r.RouterAssumeKVReuse, "router_assume_kv_reuse"},
		{"--no-router-track-prefill-tokens", r.RouterTrackPrefillTokens, "router_track_prefill_tokens"},
	} {
		if !s.on {
			args = append(args, argument{name: s.flag, from: "router." + s.key})
		}
	}
	if r.RouterQueuePolicy == router.QueueWSPT {
		args = append(args, argument{"--router-queue-policy", "wspt", "router.router_queue_policy"})
	}
	if r.RouterPrefillLoadModel == router.PrefillLoadAIC {
		args = append(args, d.loadModelArguments(r)...)
	}
	return args
}

// loadModelArguments say what the router predicts the duration of prompts with.
func (d *deployment) loadModelArguments(r router.Config) []argument {
	t := d.workers[0].Timing
	if r.PredictsItself() {
		t = r.PrefillTiming
	}
	args := []argument{{"--router-prefill-load-model", "aic", "router.router_prefill_load_model"}}
	if t.GPU == "" {
		d.lacks("router.router_prefill_load_model", r.RouterPrefillLoadModel, "add --aic-system and --aic-model-path; the configuration names no GPU")
		return args
	}
	args = append(args,
		argument{"--aic-backend", t.Backend, "timing.backend"}, argument{"--aic-system", t.GPU, "timing.gpu"},
		argument{"--aic-model-path", d.workers[0].model, "timing.model"})
	for _, n := range []struct {
		flag, from      string
		value, standard int
	}{
		{"--aic-tp-size", "timing.tp", t.TP, 1}, {"--aic-attention-dp-size", "timing.dp", t.DP, 1}, {"--aic-moe-ep-size", "timing.ep", t.EP, 1},
	} {
		if n.value > n.standard {
			args = append(args, argument{n.flag, strconv.Itoa(n.value), n.from})
		}
	}
	return args
}

// service writes the service of a pool of workers.
func (d *deployment) service(y *yamlWriter, w worker) {
	y.line(2, d.backend.services[w.role]+":")
	y.entry(3, "componentType", "worker", "")
	switch {
	case w.role != "":
		y.entry(3, "subComponentType", w.role, "deployment.mode")
	case d.Config.Planner.Policy == planner.PolicyDynamo:
		y.entry(3, "subComponentType", roleDecode, "what the planner scales")
	}
	from := map[string]string{"": "deployment.workers", rolePrefill: "deployment.prefill_workers", roleDecode: "deployment.decode_workers"}
	y.entry(3, "replicas", w.Workers, from[w.role])
	y.entry(3, "envFromSecret", tokenSecret, "")
	env, args := d.workerArguments(w)
	variables(y, env)
	d.resources(y, w)
	container(y, d.backend.image, d.backend.module, args)
	startupProbe(y, w)
}

// variables writes the environment of a service.
func variables(y *yamlWriter, env []argument) {
	if len(env) == 0 {
		return
	}
	y.line(3, "envs:")
	for _, v := range env {
		y.line(4, "- name: "+yamlScalar(v.name)+behind(v.from))
		y.line(5, "value: "+yamlText(v.value))
	}
}

// resources writes the GPUs of a worker, which may be on several nodes.
func (d *deployment) resources(y *yamlWriter, w worker) {
	gpus := w.GPUsPerWorker()
	if g, err := catalogue.FindGPU(w.Timing.GPU); w.hasGPU() && err == nil {
		if g.Vendor != "nvidia" {
			d.lacks("timing.gpu", w.Timing.GPU, "Dynamo's containers are for GPUs of NVIDIA; the script %s.sh does not depend on them", d.backend.name+w.suffix())
		}
		if nodes := w.nodes(); nodes > 1 {
			y.line(3, "multinode:")
			y.entry(4, "nodeCount", nodes, fmt.Sprintf("timing.tp × timing.dp, %d GPUs in a node", g.GPUsPerNode))
			if gpus%nodes != 0 {
				d.lacks("timing.tp × timing.dp", gpus, "%d nodes cannot have the same number of GPUs of a worker", nodes)
			}
			gpus = (gpus + nodes - 1) / nodes
		}
		d.check("Pods go to any node with free GPUs; where the cluster has several kinds, add a nodeSelector for %s (`timing.gpu`).", g.Name)
	}
	y.line(3, "resources:")
	y.line(4, "limits:")
	y.line(5, "gpu: "+yamlText(strconv.Itoa(gpus))+behind("timing.tp × timing.dp"))
}

// container writes the pod of a service: a Python module with its arguments.
func container(y *yamlWriter, image, module string, args []argument) {
	y.line(3, "extraPodSpec:")
	y.line(4, "mainContainer:")
	y.entry(5, "image", registry+image+":"+release, "")
	y.line(5, "command: [python3, -m, "+module+"]")
	if len(args) == 0 {
		return
	}
	y.line(5, "args:")
	for _, a := range args {
		y.item(6, a.name, a.from)
		if a.value != "" {
			y.line(6, "- "+yamlText(a.value))
		}
	}
}

// yamlText writes a scalar that has to be text, also where it looks like a number.
func yamlText(value string) string {
	text := yamlScalar(value)
	if strings.HasPrefix(text, "'") || strings.HasPrefix(text, `"`) {
		return text
	}
	if plainScalar.MatchString(text) {
		return text
	}
	return "'" + text + "'"
}

// startupProbe gives a worker time to start where the simulation knows how long that takes; else the operator's probe stays.
func startupProbe(y *yamlWriter, w worker) {
	seconds := w.Engine.StartupTime
	if seconds <= 0 {
		return
	}
	const period = 10
	y.line(5, "startupProbe:"+behind("three times engine.startup_time"))
	y.line(6, "httpGet: {path: /health, port: 9090}")
	y.entry(6, "periodSeconds", period, "")
	y.entry(6, "failureThreshold", int(min(math.Ceil(3*seconds/period), 1e6))+1, "")
}

// workerArguments are the environment and the flags of Dynamo's worker: those of the server itself, and what Dynamo needs beside
// them.
func (d *deployment) workerArguments(w worker) (env, args []argument) {
	env = slices.Clone(w.env)
	args = []argument{{"--model", w.model, "timing.model"}}
	events := d.Config.Router.Policy == router.PolicyKVRouter && w.role != roleDecode && w.Engine.EnablePrefixCaching
	switch d.backend.name {
	case "vllm":
		args = append(args, w.args...)
		if w.role != "" {
			args = append(args, argument{"--disaggregation-mode", w.role, "deployment.mode"})
		}
		if events {
			args = append(args, argument{"--kv-events-config", `{"publisher":"zmq","topic":"kv-events","endpoint":"tcp://*:20080","enable_kv_cache_events":true}`, "router.policy"})
		}
	case "sglang":
		args[0].name = "--model-path"
		args = append(args, w.args...)
		if events {
			args = append(args, argument{"--kv-events-config", `{"publisher":"zmq","topic":"kv-events","endpoint":"tcp://*:5557"}`, "router.policy"})
		}
		if w.role != "" { // workers meet at this port of the prefill worker's pod
			args = append(args, argument{"--host", "0.0.0.0", "deployment.mode"}, argument{"--disaggregation-bootstrap-port", "12345", "deployment.mode"})
		}
	default:
		args[0].name = "--model-path"
		args = append(args, trtllmArguments(w)...)
		if events {
			args = append(args, argument{name: "--publish-kv-events", from: "router.policy"})
		}
	}
	if t := d.tiersOf(w); t.NumG2Blocks > 0 && d.backend.name != "sglang" {
		tierEnv, tierArgs := d.blockManager(w, args)
		return append(env, tierEnv...), tierArgs
	}
	return env, args
}

// trtllmArguments are the flags of Dynamo's TensorRT-LLM worker, which has some of the options as flags and takes the rest as JSON.
// Memory below the GPUs' own is the block manager's.
func trtllmArguments(w worker) []argument {
	flags := map[string]string{
		"tensor_parallel_size": "--tensor-parallel-size", "moe_expert_parallel_size": "--expert-parallel-size", "enable_attention_dp": "--enable-attention-dp",
		"max_batch_size": "--max-batch-size", "max_num_tokens": "--max-num-tokens", "max_seq_len": "--max-seq-len",
	}
	args := []argument{{"--kv-block-size", strconv.Itoa(w.Engine.BlockSize), "engine.block_size"}}
	var rest []option
	for _, o := range w.options {
		flag, ok := flags[o.name]
		if section, is := o.value.([]option); is {
			o.value = slices.DeleteFunc(slices.Clone(section), func(o option) bool { return o.name == "host_cache_size" })
		}
		switch {
		case !ok:
			rest = append(rest, o)
		case o.value == true:
			args = append(args, argument{name: flag, from: o.from})
		default:
			args = append(args, argument{flag, fmt.Sprint(o.value), o.from})
		}
	}
	args = append(args, argument{"--override-engine-args", optionsJSON(rest), "what has no flag of its own, see trtllm" + w.suffix() + ".yaml"})
	if w.role != "" {
		args = append(args, argument{"--disaggregation-mode", w.role, "deployment.mode"})
	}
	return args
}

// optionsJSON writes options as a JSON object in their order.
func optionsJSON(options []option) string {
	var parts []string
	for _, o := range options {
		text := ""
		if section, ok := o.value.([]option); ok {
			text = optionsJSON(section)
		} else if encoded, err := json.Marshal(o.value); err == nil {
			text = string(encoded)
		}
		parts = append(parts, strconv.Quote(o.name)+":"+text)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// blockManager lets Dynamo's KV block manager hold the lower memory tiers instead of the server.
func (d *deployment) blockManager(w worker, args []argument) (env, with []argument) {
	t := d.tiersOf(w)
	for _, tier := range []struct {
		name, from string
		blocks     int
	}{{"CPU", "tiers.num_g2_blocks", t.NumG2Blocks}, {"DISK", "tiers.num_g3_blocks", t.NumG3Blocks}} {
		if tier.blocks > 0 {
			env = append(env, argument{"DYN_KVBM_" + tier.name + "_CACHE_OVERRIDE_NUM_BLOCKS", strconv.Itoa(tier.blocks), tier.from})
		}
	}
	if d.backend.name == "trtllm" {
		return env, append(args, argument{"--connector", "kvbm", "tiers.num_g2_blocks"})
	}
	const module, both = `"kv_connector_module_path":"kvbm.vllm_integration.connector"`, `"kv_role":"kv_both"`
	manager := `{"kv_connector":"DynamoConnector",` + module + `,` + both + `}`
	config := manager
	if w.role != "" {
		config = `{"kv_connector":"PdConnector",` + both + `,"kv_connector_extra_config":{"connectors":[` + manager + `,{"kv_connector":"NixlConnector",` + both + `}]},` + module + `}`
	}
	for _, a := range args {
		if a.name != "--kv-transfer-config" && a.name != "--kv-offloading-size" {
			with = append(with, a)
		}
	}
	return env, append(with, argument{"--kv-transfer-config", config, "tiers.num_g2_blocks"})
}

// planner writes the service of Dynamo's planner.
func (d *deployment) planner(y *yamlWriter) {
	y.line(2, "Planner:")
	y.entry(3, "componentType", "planner", "")
	y.entry(3, "replicas", 1, "")
	y.entry(3, "envFromSecret", tokenSecret, "")
	container(y, "dynamo-planner", "dynamo.planner", []argument{{"--config", d.plannerJSON(), "planner"}})
}

// plannerJSON is the configuration of the planner, as far as it is not the default.
func (d *deployment) plannerJSON() string {
	mode := "agg"
	if d.Config.Deployment.Mode == simcore.ModeDisaggregated {
		mode = "disagg"
	}
	options := []option{
		{"environment", "kubernetes", ""}, {"backend", d.backend.name, ""}, {"mode", mode, ""}, {"pre_deployment_sweeping_mode", "none", ""},
		{"model_name", d.workers[0].model, ""},
	}
	options = append(options, plannerOptions(d.Config.Planner)...)
	if t := d.workers[0].Timing; d.Config.Planner.OptimizationTarget == "sla" && t.GPU != "" {
		model := []option{{"hf_id", d.workers[0].model, ""}, {"system", t.GPU, ""}, {"backend", d.backend.name, ""}}
		for _, w := range d.workers {
			pick := map[string]string{"": "decode_pick", rolePrefill: "prefill_pick", roleDecode: "decode_pick"}
			model = append(model, option{pick[w.role], w.parallelism(), ""})
		}
		options = append(options, option{"aic_perf_model", model, ""})
	}
	return optionsJSON(options)
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// kubernetesName makes a name that Kubernetes allows, and Dynamo, which appends the names of its services.
func kubernetesName(name string) string {
	const longest = 30
	name = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if name == "" || name[0] < 'a' {
		name = strings.TrimSuffix("servegrid-"+name, "-")
	}
	return strings.TrimRight(name[:min(len(name), longest)], "-")
}
