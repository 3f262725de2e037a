// Package storage keeps workloads and results in folders and buckets alike: file:// and mem:// in every build, s3://,
// gs:// and azblob:// in those with the build tag full.
//
// [Parse] reads a URL and refuses secrets in it, [Open] opens what it names, [System] lets the simulator read files at URLs, and
// [OpenResults] keeps the output folder of a sweep in a bucket. Credentials come from the environment only, and no message
// contains any.
//
// Read url.go first, then store.go (objects), errors.go (what goes wrong, and what is tried again), reader.go (reading on after
// a broken connection), system.go (files that a spec names) and results.go (the folder of a sweep).
package storage
