package plannerreport

import (
	"strings"

	"github.com/servegrid/servegrid/results/timeplot"
)

// states are the reasons of decisions (planner specification §9.6) and of the other policies, in the order of the page's key.
var states = []timeplot.State{
	{Name: "scale_up", Kind: timeplot.KindUp, Meaning: "asks for more workers"},
	{Name: "scale_down", Kind: timeplot.KindDown, Meaning: "asks for fewer workers"},
	{Name: "min_endpoint", Kind: timeplot.KindUp, Meaning: "there were fewer workers than min_endpoint"},
	{Name: "gpu_budget", Kind: timeplot.KindHeld, Meaning: "the GPUs were not within the budget"},
	{Name: "foresight", Kind: timeplot.KindQuiet, Meaning: "as many workers as what is to come needs"},
	{Name: "sla_out_of_reach", Kind: timeplot.KindBroken, Meaning: "no number of workers within the limits keeps the SLA"},
	{Name: "scale", Kind: timeplot.KindUp, Meaning: "asks for as many workers as the predicted load needs"},
	{Name: "set_lower_bound", Kind: timeplot.KindDown, Meaning: "sets the least number of workers that load scaling keeps"},
	{Name: "scale_down_capped_by_throughput", Kind: timeplot.KindHeld, Meaning: "fewer workers would do now, but the predicted load needs those there are"},
	{Name: "scale_down_refused_consolidation", Kind: timeplot.KindRefused, Meaning: "one worker less could not take the load of all within the SLA"},
	{Name: "no_change", Kind: timeplot.KindQuiet, Meaning: "the number of workers suits the load"},
	{Name: "disabled", Kind: timeplot.KindQuiet, Meaning: "this way of scaling is off"},
	{Name: "scaling_in_progress", Kind: timeplot.KindWaiting, Meaning: "waits for workers that start"},
	{Name: "worker_count_mismatch", Kind: timeplot.KindBroken, Meaning: "not every worker has told about its passes yet"},
	{Name: "no_fpm_data", Kind: timeplot.KindBlind, Meaning: "no worker has told about its passes"},
	{Name: "no_traffic_data", Kind: timeplot.KindBlind, Meaning: "nothing is known of the traffic"},
	{Name: "insufficient_data", Kind: timeplot.KindBlind, Meaning: "too few passes to estimate latencies from"},
	{Name: "model_not_ready", Kind: timeplot.KindWaiting, Meaning: "the performance model cannot say what a worker serves"},
	{Name: "partner_not_ready", Kind: timeplot.KindWaiting, Meaning: "the performance model of the other pool cannot say what a worker serves"},
	{Name: "predict_failed", Kind: timeplot.KindBroken, Meaning: "the load could not be predicted"},
}

// explain is a reason in words.
func explain(reason string) string {
	words := strings.ReplaceAll(reason, "_", " ")
	for _, s := range states {
		if s.Name == reason {
			return words + ": " + s.Meaning
		}
	}
	return words
}
