package bench

import (
	"context"
	"testing"
	"os"
)

func TestAdhoc(t *testing.T) {
	r := &runner{options: options{jobs: 20000}}
	c, err := find(os.Getenv("READY"))
	if err != nil { t.Fatal(err) }
	r.controller = c
	r.unit = 1000000
	if err := r.overRAPI(context.Background()); err != nil { t.Fatal(err) }
	t.Log(r.report.Figures)
}
