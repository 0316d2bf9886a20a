module github.com/drover-project/drover

go 1.26.8

require (
	golang.org/x/text v0.43.0
	pgregory.net/rapid v1.3.0
)

require github.com/tidwall/btree v1.8.2

require github.com/dlclark/regexp2/v2 v2.12.0

require github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3
