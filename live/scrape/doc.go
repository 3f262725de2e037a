// Package scrape reads, beside a live run, what servers say of themselves: the Prometheus metrics of vLLM and SGLang.
//
// Read scraper.go for when pages are read and names.go for what is looked for in them.
package scrape
