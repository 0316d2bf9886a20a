package app

import (
	"testing"
	"time"
)

// TestNobodyIsSureUnheard: the lease that a term begins with says nothing about now.
func TestNobodyIsSureUnheard(t *testing.T) {
	c := &controller{begun: time.Now()}
	if c.isSure() {
		t.Error("a controller is sure that it leads, and has not asked")
	}
	c.heard.Store(int64(time.Since(c.begun)) + 1)
	if limit := c.sureUntil(); !c.begun.Add(assurance).Before(limit) || limit.After(time.Now().Add(assurance+1)) {
		t.Errorf("it is sure for %v", limit.Sub(c.begun))
	}
}
