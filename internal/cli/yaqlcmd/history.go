package yaqlcmd

import (
	"os"
	"path/filepath"
	"strings"
)

// maxHistory is how many lines are kept.
const maxHistory = 1000

// history holds the lines typed, the oldest first. It implements term.History.
type history struct {
	file  string
	lines []string
}

// loadHistory reads the lines of earlier sessions; without a file, or when it cannot be read, there are none.
func loadHistory(file string) *history {
	h := &history{file: file}
	text, err := os.ReadFile(file)
	if err != nil {
		return h
	}
	for line := range strings.Lines(string(text)) {
		h.Add(strings.TrimSuffix(line, "\n"))
	}
	return h
}

// Add appends a line, unless it repeats the one before.
func (h *history) Add(line string) {
	if line == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	if extra := len(h.lines) - maxHistory; extra > 0 {
		h.lines = h.lines[extra:]
	}
}

// Len returns the number of lines.
func (h *history) Len() int { return len(h.lines) }

// At returns a line, 0 being the latest.
func (h *history) At(back int) string { return h.lines[len(h.lines)-1-back] }

// save keeps the lines for the next session.
func (h *history) save() error {
	if h.file == "" || len(h.lines) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(h.file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(h.file, []byte(strings.Join(h.lines, "\n")+"\n"), 0o600)
}
