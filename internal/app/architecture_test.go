package app

import "testing"

// TestTheArchitectureIsThatOfTheMachine, in the words of uname.
func TestTheArchitectureIsThatOfTheMachine(t *testing.T) {
	for name, want := range map[string]string{"amd64": "x86_64", "arm64": "aarch64", "riscv64": "riscv64"} {
		if got := architecture(name); got[1] != want {
			t.Errorf("%s is %v, want %s", name, got, want)
		}
	}
}
