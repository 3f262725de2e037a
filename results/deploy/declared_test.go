package deploy_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
)

// declaration is what a release says about a flag.
type declaration struct {
	Kind    string `json:"kind"`
	Choices []any  `json:"choices"`
}

// takes reports whether a flag takes a value, which a switch does not.
func (d declaration) takes(value string) bool {
	var err error
	switch d.Kind {
	case "switch":
		return false
	case "int":
		_, err = strconv.Atoi(value)
	case "float":
		_, err = strconv.ParseFloat(value, 64)
	case "json":
		err = json.Unmarshal([]byte(value), new(any))
	}
	return err == nil && (len(d.Choices) == 0 || slices.Contains(d.Choices, any(value)))
}

// releases lists the releases of a server.
func releases(declared map[string]map[string]declaration, server string) []string {
	var out []string
	for name := range declared {
		if strings.HasPrefix(name, server+" ") {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}

// checkFlags parses a command line by the declarations of one or more parsers that share it.
func checkFlags(t *testing.T, where string, words []string, parsers ...map[string]declaration) {
	t.Helper()
	seen := map[string]bool{}
	for i := 0; i < len(words); i++ {
		flag := words[i]
		var d declaration
		known := false
		for _, p := range parsers {
			if found, ok := p[flag]; ok && !known {
				d, known = found, true
			}
		}
		switch {
		case !known:
			t.Errorf("%s: %q is no flag", where, flag)
		case seen[flag]:
			t.Errorf("%s: %s stands twice", where, flag)
		case d.Kind == "switch":
		case i+1 == len(words):
			t.Errorf("%s: %s has no value", where, flag)
		default:
			if i++; !d.takes(words[i]) && !(flag == "--router-queue-threshold" && words[i] == "None") {
				t.Errorf("%s: %s does not take %q, but %+v", where, flag, words[i], d)
			}
		}
		seen[flag] = true
	}
}

// llmOptions are the options of TensorRT-LLM's LLM API 1.3 (tensorrt_llm/llmapi/llm_args.py) by what they take; those of sections are
// below their name.
var llmOptions = map[string]any{
	"tensor_parallel_size": int64(0), "pipeline_parallel_size": int64(0), "moe_expert_parallel_size": int64(0), "enable_attention_dp": false,
	"max_batch_size": int64(0), "max_num_tokens": int64(0), "max_seq_len": int64(0), "enable_chunked_prefill": false, "disable_overlap_scheduler": false,
	"kv_cache_config.enable_block_reuse": false, "kv_cache_config.max_tokens": int64(0), "kv_cache_config.free_gpu_memory_fraction": float64(0),
	"kv_cache_config.host_cache_size": int64(0), "kv_cache_config.dtype": "", "kv_cache_config.tokens_per_block": int64(0),
	"scheduler_config.capacity_scheduler_policy": "", "cache_transceiver_config.backend": "",
	"speculative_config.decoding_type": "", "speculative_config.num_nextn_predict_layers": int64(0),
}

// checkOptions checks options of TensorRT-LLM's LLM API.
func checkOptions(t *testing.T, where, prefix string, options map[string]any) {
	t.Helper()
	for name, v := range options {
		if section, ok := v.(map[string]any); ok {
			checkOptions(t, where, prefix+name+".", section)
			continue
		}
		want, ok := llmOptions[prefix+name]
		if !ok || fmt.Sprintf("%T", want) != fmt.Sprintf("%T", v) {
			t.Errorf("%s: option %s%s: %v (%T) is none that TensorRT-LLM has", where, prefix, name, v, v)
		}
	}
}

// graphFields are the fields of a DynamoGraphDeployment (nvidia.com/v1alpha1, Dynamo 1.3.1) that examples of Dynamo have; * is any
// name, and [] an element of a list.
var graphFields = []string{
	"apiVersion", "kind", "metadata.name",
	"spec.services.*.componentType", "spec.services.*.subComponentType", "spec.services.*.replicas", "spec.services.*.envFromSecret",
	"spec.services.*.envs[].name", "spec.services.*.envs[].value", "spec.services.*.resources.limits.gpu", "spec.services.*.multinode.nodeCount",
	"spec.services.*.extraPodSpec.mainContainer.image", "spec.services.*.extraPodSpec.mainContainer.command[]", "spec.services.*.extraPodSpec.mainContainer.args[]",
	"spec.services.*.extraPodSpec.mainContainer.startupProbe.httpGet.path", "spec.services.*.extraPodSpec.mainContainer.startupProbe.httpGet.port",
	"spec.services.*.extraPodSpec.mainContainer.startupProbe.periodSeconds", "spec.services.*.extraPodSpec.mainContainer.startupProbe.failureThreshold",
}

// checkGraph checks the fields of a DynamoGraphDeployment, and the arguments of its containers.
func checkGraph(t *testing.T, declared map[string]map[string]declaration, where string, text []byte) {
	t.Helper()
	graph := mapping(t, text)
	checkFields(t, where, "", graph)
	for name, s := range graph["spec"].(map[string]any)["services"].(map[string]any) {
		main := s.(map[string]any)["extraPodSpec"].(map[string]any)["mainContainer"].(map[string]any)
		var words []string
		for _, a := range main["args"].([]any) {
			words = append(words, a.(string))
		}
		module := main["command"].([]any)[2].(string)
		if module == "dynamo.planner" {
			checkPlanner(t, where, words, declared["dynamo.planner 1.3.1"])
			continue
		}
		parsers := []map[string]declaration{declared[module+" 1.3.1"]}
		switch module { // with the release of the engine in its container
		case "dynamo.vllm":
			parsers = append(parsers, declared["vllm 0.23.0"])
		case "dynamo.sglang":
			parsers = append([]map[string]declaration{declared["sglang 0.5.14"]}, parsers...)
		case "dynamo.trtllm":
			i := slices.Index(words, "--override-engine-args")
			checkOptions(t, where, "", mapping(t, []byte(words[i+1])))
		}
		checkFlags(t, where+" "+name, words, parsers...)
	}
}

// checkFields checks the paths of all values, and that the texts of Kubernetes are texts.
func checkFields(t *testing.T, where, path string, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if path == "spec.services" {
				key = "*"
			}
			checkFields(t, where, strings.TrimPrefix(path+"."+key, "."), inner)
		}
	case []any:
		for _, inner := range v {
			checkFields(t, where, path+"[]", inner)
		}
	default:
		if !slices.Contains(graphFields, path) {
			t.Errorf("%s: a graph has no field %s", where, path)
		}
		_, text := v.(string)
		if number := strings.HasSuffix(path, "replicas") || strings.HasSuffix(path, "nodeCount") || strings.HasSuffix(path, "Seconds") || strings.HasSuffix(path, "Threshold") || strings.HasSuffix(path, "port"); text == number {
			t.Errorf("%s: %s: %v (%T)", where, path, v, v)
		}
	}
}

// checkPlanner checks the configuration of the planner.
func checkPlanner(t *testing.T, where string, words []string, keys map[string]declaration) {
	t.Helper()
	if len(words) != 2 || words[0] != "--config" {
		t.Fatalf("%s: planner %q", where, words)
	}
	var config map[string]any
	if err := json.Unmarshal([]byte(words[1]), &config); err != nil {
		t.Fatalf("%s: planner: %v", where, err)
	}
	for key := range config {
		if _, ok := keys[key]; !ok {
			t.Errorf("%s: Dynamo's planner has no %s", where, key)
		}
	}
}
