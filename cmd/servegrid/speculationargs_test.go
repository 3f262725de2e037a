package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSpeculationArgs checks where the reference's arguments for speculative decoding go, and what is refused.
func TestSpeculationArgs(t *testing.T) {
	for _, test := range []struct{ args, want, refused string }{
		{args: `{"aic_nextn": 2}`, want: `{"num_speculative_tokens": 2}`},
		{args: `{"aic_nextn": 5, "aic_nextn_accept_rates": "0.5, 0.25", "aic_mtp_seed": 18446744073709551615}`,
			want: `{"num_speculative_tokens": 5, "acceptance_rates": "0.5, 0.25", "speculation_seed": 18446744073709551615}`},
		{args: `{"aic_nextn": null, "aic_nextn_accept_rates": null}`, want: `{}`},
		{args: `{"aic_mtp_seed": 7}`, want: `{"speculation_seed": 7}`},
		{args: `{"aic_nextn": 2, "num_speculative_tokens": 2}`, want: `{"num_speculative_tokens": 2}`},
		{args: `{"aic_nextn": 2, "num_speculative_tokens": 3}`, refused: "aic_nextn is 2 and num_speculative_tokens is 3"},
		{args: `{"aic_nextn": 0}`, refused: "aic_nextn is 0; give 1 to 5 tokens"},
		{args: `{"aic_nextn": 6}`, refused: "aic_nextn is 6; give 1 to 5 tokens"},
		{args: `{"aic_nextn": 1.5}`, refused: "aic_nextn is 1.5; give 1 to 5 tokens"},
		{args: `{"aic_nextn": "two"}`, refused: "aic_nextn is two; give 1 to 5 tokens"},
		{args: `{"aic_nextn_accept_rates": "0.5"}`, refused: "aic_nextn is missing"},
		{args: `{"aic_mtp_seed": null}`, refused: "aic_mtp_seed is null"},
	} {
		got, _, err := movedArgs(t, test.args, "", "")
		if test.refused != "" {
			if err == nil || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("%s: %v, want %q", test.args, err, test.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.args, err)
			continue
		}
		want, err := jsonSection("want", test.want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.args, diff)
		}
	}
}
