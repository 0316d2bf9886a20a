package placement_test

import (
	"testing"

	"github.com/drover-project/drover/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Cases(m, 3000) }
