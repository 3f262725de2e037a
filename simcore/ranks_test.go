package simcore

import (
	"context"
	"testing"

	"github.com/servegrid/servegrid/simcore/rules"
)

// TestRanksHaveTheirOwnLimits checks that data-parallel ranks multiply what a worker computes in one pass, and that in
// the reference they share it.
func TestRanksHaveTheirOwnLimits(t *testing.T) {
	w := requestsOf(t, 512, 20, 32)
	passes := func(compat rules.Compat) int64 {
		cfg := DefaultConfig()
		cfg.Compat = compat
		cfg.Timing.GPU, cfg.Timing.Model, cfg.Timing.Backend = "h200_sxm", "qwen3-235b-a22b", "sglang"
		cfg.Timing.DType, cfg.Timing.BackendVersion = "fp8_block", "current"
		cfg.Timing.DP, cfg.Timing.EP = 8, 8
		cfg.Engine.MaxNumSeqs, cfg.Engine.EnablePrefixCaching = 1, false
		r, err := Run(context.Background(), cfg, w, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.CompletedRequests != 32 {
			t.Fatalf("%d requests completed", r.CompletedRequests)
		}
		return r.Passes
	}
	if ranks, shared := passes(rules.Default), passes(rules.Dynamo13); ranks*4 > shared {
		t.Errorf("%d passes where each of eight ranks serves a request, %d where the ranks share one", ranks, shared)
	}
}
