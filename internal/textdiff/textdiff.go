// Package textdiff tells how two texts differ, line by line.
//
// Invariants:
//   - The lines of all hunks, put into the place of what they say was there, make the second text of the first (TestHunksLeadFromOneToTheOther).
//   - What it costs is bounded: texts that differ too much are told as one that went and one that came.
package textdiff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mostEdits bounds how many lines may differ for the shortest difference to be looked for; time and memory grow with its square.
const mostEdits = 500

// Line is a line of a difference.
type Line struct {
	// Mark is '-' for a line of the first text alone, '+' for one of the second alone, and ' ' for one of both.
	Mark byte
	// Text is the line without its end; Open tells that it is the last of its text and has none.
	Text string
	Open bool
}

// Hunk is a place where two texts differ.
type Hunk struct {
	// Old and New are the first line of the hunk in the two texts, from 1, OldLines and NewLines how many lines of each are in it.
	Old, OldLines, New, NewLines int
	Lines                        []Line
}

// Header says where the hunk is, as programs for patches read it.
func (h *Hunk) Header() string {
	return "@@ -" + span(h.Old, h.OldLines) + " +" + span(h.New, h.NewLines) + " @@"
}

// span is a first line with a number of lines. Without any it is the line before.
func span(first, lines int) string {
	switch lines {
	case 0:
		return fmt.Sprintf("%d,0", first-1)
	case 1:
		return strconv.Itoa(first)
	}
	return fmt.Sprintf("%d,%d", first, lines)
}

// Between returns the hunks in which two texts differ, with so many lines that they share around each.
func Between(before, after string, context int) []Hunk {
	a, b := split(before), split(after)
	return hunks(script(a, b), context)
}

// Unified is a difference as programs for patches read it; empty for texts that are the same.
func Unified(oldName, newName, before, after string) string {
	const context = 3
	b := &strings.Builder{}
	for i, h := range Between(before, after, context) {
		if i == 0 {
			fmt.Fprintf(b, "--- %s\n+++ %s\n", oldName, newName)
		}
		b.WriteString(h.Header() + "\n")
		for _, l := range h.Lines {
			b.WriteString(string(l.Mark) + l.Text + "\n")
			if l.Open {
				b.WriteString(NoEnd + "\n")
			}
		}
	}
	return b.String()
}

// NoEnd is written behind a line that is the last of a text and has no end.
const NoEnd = `\ No newline at end of file`

// split returns the lines of a text, each with its end.
func split(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// edit is a line of both texts, or of one of them.
type edit struct {
	mark byte
	text string
}

// script is how the second text is made of the first.
func script(a, b []string) []edit {
	same := 0
	for same < len(a) && same < len(b) && a[same] == b[same] {
		same++
	}
	end := 0
	for end < len(a)-same && end < len(b)-same && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	out := make([]edit, 0, len(a)+len(b)-same-end)
	for _, l := range a[:same] {
		out = append(out, edit{' ', l})
	}
	out = append(out, middle(a[same:len(a)-end], b[same:len(b)-end])...)
	for _, l := range a[len(a)-end:] {
		out = append(out, edit{' ', l})
	}
	return out
}

// reach is how far one comes in the first text on each diagonal, x-y, from -(edits+1) on.
type reach []int

func (r reach) at(k int) int { return r[len(r)/2+k] }

// step is the diagonal from which one comes to another with the last of so many edits: from above by a line that came, else by one that went.
func (r reach) step(k, edits int) (from int) {
	if k == -edits || k != edits && r.at(k-1) < r.at(k+1) {
		return k + 1
	}
	return k - 1
}

// middle finds a shortest script, by how far one comes with so many edits on each diagonal (E. W. Myers, An O(ND) Difference Algorithm, 1986).
func middle(a, b []string) []edit {
	most := min(len(a)+len(b), mostEdits)
	far := make(reach, 2*most+3)
	var before []reach // far, before each number of edits
	for d := 0; d <= most; d++ {
		before = append(before, slices.Clone(far[len(far)/2-d-1:len(far)/2+d+2]))
		for k := -d; k <= d; k += 2 {
			x := far.at(k + 1)
			if far.step(k, d) < k {
				x = far.at(k-1) + 1
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			far[len(far)/2+k] = x
			if x >= len(a) && x-k >= len(b) {
				return back(a, b, before)
			}
		}
	}
	out := make([]edit, 0, len(a)+len(b))
	for _, l := range a {
		out = append(out, edit{'-', l})
	}
	for _, l := range b {
		out = append(out, edit{'+', l})
	}
	return out
}

// back follows the way from the ends of both texts to their beginnings.
func back(a, b []string, before []reach) []edit {
	x, y := len(a), len(b)
	var out []edit
	for d, far := range slices.Backward(before) {
		from := far.step(x-y, d)
		fx := far.at(from)
		fy := fx - from
		for x > max(fx, 0) && y > max(fy, 0) {
			x, y = x-1, y-1
			out = append(out, edit{' ', a[x]})
		}
		switch {
		case d == 0:
		case x == fx:
			y--
			out = append(out, edit{'+', b[y]})
		default:
			x--
			out = append(out, edit{'-', a[x]})
		}
	}
	slices.Reverse(out)
	return out
}

// hunks gathers edits that are not further apart than the lines around them reach.
func hunks(edits []edit, context int) []Hunk {
	var out []Hunk
	old, fresh := 1, 1 // the next line of each text
	last := -1         // the last edit that is in a hunk
	for i, e := range edits {
		if e.mark != ' ' {
			first := max(i-context, last+1)
			if len(out) == 0 || first > last+1 {
				out = append(out, Hunk{Old: old - (i - first), New: fresh - (i - first)})
			}
			h := &out[len(out)-1]
			for _, x := range edits[first : i+1] {
				h.add(x)
			}
			last = i
		} else if len(out) > 0 && i-last <= context && last >= 0 && lastChange(edits, i, context) {
			out[len(out)-1].add(e)
			last = i
		}
		if e.mark != '+' {
			old++
		}
		if e.mark != '-' {
			fresh++
		}
	}
	return out
}

// lastChange tells whether one of the lines before is a change, no further away than the lines around it reach.
func lastChange(edits []edit, i, context int) bool {
	for back := 1; back <= context && back <= i; back++ {
		if edits[i-back].mark != ' ' {
			return true
		}
	}
	return false
}

func (h *Hunk) add(e edit) {
	text, ended := strings.CutSuffix(e.text, "\n")
	h.Lines = append(h.Lines, Line{Mark: e.mark, Text: text, Open: !ended})
	if e.mark != '+' {
		h.OldLines++
	}
	if e.mark != '-' {
		h.NewLines++
	}
}
