// Package bench holds benchmarks of whole sessions, stores, webhooks and models,
// against baselines of the same run. docs/performance.md publishes what they print.
package bench
