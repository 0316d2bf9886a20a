package query

import (
	"math/big"
	"strings"
	"testing"
	"time"
)

func TestWrittenTimes(t *testing.T) {
	zone := time.FixedZone("", 3600)
	now := time.Unix(1_800_000_000, 0).In(zone)
	for text, want := range map[string]int64{
		"2026-11-15":                time.Date(2026, 11, 15, 0, 0, 0, 0, zone).Unix(),
		"2026-11-15 08:30":          time.Date(2026, 11, 15, 8, 30, 0, 0, zone).Unix(),
		"2026-11-15 08:30:15":       time.Date(2026, 11, 15, 8, 30, 15, 0, zone).Unix(),
		"2026-11-15T08:30:15Z":      time.Date(2026, 11, 15, 8, 30, 15, 0, time.UTC).Unix(),
		"2026-11-15T08:30:15-02:00": time.Date(2026, 11, 15, 10, 30, 15, 0, time.UTC).Unix(),
		"-1h":                       now.Unix() - 3600,
		"-1h30m":                    now.Unix() - 5400,
		"-2w":                       now.Unix() - 14*86400,
		"+10s":                      now.Unix() + 10,
	} {
		if got, ok := writtenTime(text, now); !ok || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-", "1h", "-h", "-1", "-1y", "2026-13-01", "yesterday", "-99999999999h"} {
		if got, ok := writtenTime(text, now); ok {
			t.Errorf("%q: got %d", text, got)
		}
	}
}

func TestWrittenDurations(t *testing.T) {
	for text, want := range map[string]int64{"90s": 90, "1m": 60, "1h30m": 5400, "2d": 172800, "1w": 604800, "0s": 0} {
		if got, ok := writtenDuration(text); !ok || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "1", "-1m", "+1m", "m", "1.5h", "1M", "1h ", "999999999w999999999w", strings.Repeat("999999999w", 100_000)} {
		if got, ok := writtenDuration(text); ok {
			t.Errorf("%.50q: got %d", text, got)
		}
	}
}

func TestWrittenSizes(t *testing.T) {
	for text, want := range map[string]int64{"1G": 1024, "1.5g": 1536, "512M": 512, "2TiB": 2 << 20, "3GB": 3072, "0.5m": 1} {
		if got, ok := writtenSize(text); !ok || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "1", "G", "-1G", "1k", "1.G"} {
		if got, ok := writtenSize(text); ok {
			t.Errorf("%q: got %d", text, got)
		}
	}
}

func TestNanosKeepAllDigits(t *testing.T) {
	for n, want := range map[Nanos]string{1795309512465136129: "1795309512.465136129", 5_000_000_000: "5", -1: "-0.000000001", 1_500_000_000: "1.5"} {
		if got := string(AppendValue(nil, n)); got != want {
			t.Errorf("%d: got %s, want %s", int64(n), got, want)
		}
	}
	at := Nanos(1795309512465136129)
	for want, c := range map[int64]int{1795309512465136129: 0, 1795309512465136128: 1, 1795309512465136130: -1, 1795309512: 1, 1795309513: -1} {
		if got := at.compare(big.NewInt(want)); got != c {
			t.Errorf("against %d: got %d, want %d", want, got, c)
		}
	}
	if CompareCells(Cell{Value: Nanos(5)}, Cell{Value: Nanos(7)}) != -1 || CompareCells(Cell{Value: at}, Cell{Value: 1795309512.0}) != 1 {
		t.Error("wrong order")
	}
}
