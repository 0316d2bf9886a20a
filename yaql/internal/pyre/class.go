package pyre

import (
	"slices"
	"strings"
	"unicode/utf8"

	letters "unicode"
)

// write adds the class. Categories keep their names where they can; a negated one among other members
// is spelled out as ranges.
func (n set) write(w *writer) {
	if len(n.categories) == 1 && len(n.ranges) == 0 {
		n.writeCategory(w, n.categories[0])
		return
	}
	ranges := merged(n.ranges)
	if n.flags&IgnoreCase != 0 {
		ranges = foldRanges(ranges, n.flags&ASCII != 0)
	}
	var inside strings.Builder
	for _, category := range eachOnce(n.categories) {
		switch {
		case n.flags&ASCII != 0:
			ranges = append(slices.Clip(ranges), asciiCategory(category)...)
		case category >= 'a':
			inside.WriteString(categoryText[category])
		default:
			ranges = append(slices.Clip(ranges), complement(categoryRanges(category+'a'-'A'))...)
		}
	}
	for i := 0; i < len(ranges); i += 2 {
		inside.WriteString(quote(ranges[i]))
		if ranges[i] != ranges[i+1] {
			inside.WriteString("-" + quote(ranges[i+1]))
		}
	}
	n.open(w, n.negated)
	w.WriteString(inside.String() + "]")
}

func (n set) open(w *writer, negated bool) {
	w.WriteByte('[')
	if negated {
		w.WriteByte('^')
	}
}

func (n set) writeCategory(w *writer, category byte) {
	negated := n.negated
	if category < 'a' {
		category, negated = category+'a'-'A', !negated
	}
	n.open(w, negated)
	if n.flags&ASCII == 0 {
		w.WriteString(categoryText[category] + "]")
		return
	}
	for ranges := asciiCategory(category); len(ranges) > 0; ranges = ranges[2:] {
		w.WriteString(quote(ranges[0]) + "-" + quote(ranges[1]))
	}
	w.WriteByte(']')
}

// merged are the same members in as few ranges as there can be, so that what is named again and again costs once.
func merged(ranges []rune) []rune {
	pairs := sorted(ranges)
	var out []rune
	for _, pair := range pairs {
		if last := len(out) - 1; last > 0 && pair[0] <= out[last]+1 {
			out[last] = max(out[last], pair[1])
			continue
		}
		out = append(out, pair[0], pair[1])
	}
	return out
}

// sorted are pairs of first and last, in order.
func sorted(ranges []rune) [][2]rune {
	pairs := make([][2]rune, 0, len(ranges)/2)
	for i := 0; i < len(ranges); i += 2 {
		pairs = append(pairs, [2]rune{ranges[i], ranges[i+1]})
	}
	slices.SortFunc(pairs, func(a, b [2]rune) int { return int(a[0] - b[0]) })
	return pairs
}

// eachOnce are the categories, of which there are six.
func eachOnce(categories []byte) (out []byte) {
	for _, c := range categories {
		if !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// asciiCategory returns the members of a category when the pattern knows ASCII only.
func asciiCategory(category byte) []rune {
	switch category {
	case 'd':
		return []rune{'0', '9'}
	case 's':
		return []rune{'\t', '\r', ' ', ' '}
	case 'w':
		return []rune{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'}
	}
	return complement(asciiCategory(category + 'a' - 'A'))
}

// categoryRanges returns the members of a Unicode category in order.
func categoryRanges(category byte) []rune {
	tables := map[byte][]*letters.RangeTable{'d': {letters.Nd}, 'w': {letters.L, letters.N}, 's': {letters.Z}}[category]
	ranges := map[byte][]rune{'w': {'_', '_'}, 's': {'\t', '\r', 0x1c, 0x1f, 0x85, 0x85}}[category]
	for _, table := range tables {
		for _, r := range table.R16 {
			ranges = appendRange(ranges, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range table.R32 {
			ranges = appendRange(ranges, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return ranges
}

func appendRange(ranges []rune, low, high, stride rune) []rune {
	if stride == 1 {
		return append(ranges, low, high)
	}
	for c := low; c <= high; c += stride {
		ranges = append(ranges, c, c)
	}
	return ranges
}

// complement returns everything outside of the ranges.
func complement(ranges []rune) []rune {
	result := []rune{}
	next := rune(0)
	for _, pair := range sorted(ranges) {
		if pair[0] > next {
			result = append(result, next, pair[0]-1)
		}
		next = max(next, pair[1]+1)
	}
	if next <= utf8.MaxRune {
		result = append(result, next, utf8.MaxRune)
	}
	return result
}

// dottedI are the letters that Python takes for one another when case does not matter, beyond what
// Unicode's simple folding says: all four are some form of i.
const dottedI = "iIıİ"

// foldRanges adds the other cases of all members.
func foldRanges(ranges []rune, ascii bool) []rune {
	result := slices.Clone(ranges)
	for i := 0; i < len(ranges); i += 2 {
		low, high := ranges[i], ranges[i+1]
		if high-low > largestFolded {
			result = append(result, foldLarge(low, high, ascii)...)
			continue
		}
		for c := low; c <= high; c++ {
			result = append(result, foldChar(c, ascii)...)
		}
	}
	return result
}

// largestFolded is the size of a range above which it is quicker to go through all letters that have
// cases than through the range.
const largestFolded = 4096

// foldChar returns the other cases of one character, as pairs.
func foldChar(c rune, ascii bool) []rune {
	if ascii {
		if isASCIILetter(c) {
			return []rune{c ^ 0x20, c ^ 0x20}
		}
		return nil
	}
	var result []rune
	if strings.ContainsRune(dottedI, c) {
		for _, other := range dottedI {
			result = append(result, other, other)
		}
		return result
	}
	for other := letters.SimpleFold(c); other != c; other = letters.SimpleFold(other) {
		result = append(result, other, other)
	}
	return result
}

func foldLarge(low, high rune, ascii bool) []rune {
	var result []rune
	for _, table := range letters.CaseRanges {
		for c := rune(table.Lo); c <= rune(table.Hi); c++ {
			if c >= low && c <= high {
				result = append(result, foldChar(c, ascii)...)
			}
		}
	}
	return result
}
