// Package river measures the queue beside River (riverqueue), the job queue for Go that keeps its jobs in PostgreSQL,
// too: jobs that do nothing, with both of them in the same process, on the same server, in turn.
//
// It has benchmarks only, and is a module of its own, so that River is no dependency of the project.
package river
