// Package filelock keeps two programs from writing into one folder at a time.
package filelock
