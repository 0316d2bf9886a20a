package pytext

import (
	"errors"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestFormatFloat(t *testing.T) {
	for want, f := range map[string]float64{
		"0.0": 0, "-0.0": math.Copysign(0, -1), "1.0": 1, "-1.5": -1.5, "0.1": 0.1, "0.0001": 1e-4, "1e-05": 1e-5,
		"1.5e-07": 1.5e-7, "1000000000000000.0": 1e15, "1e+16": 1e16, "1.2345678901234568e+17": 123456789012345678,
		"inf": math.Inf(1), "-inf": math.Inf(-1), "nan": math.NaN(), "1.7976931348623157e+308": math.MaxFloat64,
		"5e-324": math.SmallestNonzeroFloat64, "0.30000000000000004": 0.30000000000000004, "123456789.125": 123456789.125,
	} {
		if got := FormatFloat(f); got != want {
			t.Errorf("FormatFloat(%v) = %s, want %s", f, got, want)
		}
	}
}

func TestFloatTextReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64().Draw(t, "f")
		back, err := ParseFloat(FormatFloat(f))
		if err != nil || back != f && !math.IsNaN(f) {
			t.Fatalf("%v reads back as %v, %v", f, back, err)
		}
	})
}

func TestParseInt(t *testing.T) {
	good := map[string]string{
		"0": "0", " 12\t": "12", "-7": "-7", "+7": "7", "1_000": "1000", "007": "7", "٣٤": "34", "𝟗": "9",
		"\u00a05\u2003": "5", "123456789012345678901234567890": "123456789012345678901234567890", "-0": "0",
	}
	for text, want := range good {
		if got, err := ParseInt(text); err != nil || got.String() != want {
			t.Errorf("ParseInt(%q) = %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", " ", "a", "1.0", "0x10", "1__0", "_1", "1_", "--1", "+-1", "1 2", "- 1", "½", "1e3", "+"} {
		if got, err := ParseInt(text); err == nil {
			t.Errorf("ParseInt(%q) = %v, want an error", text, got)
		}
	}
	if _, err := ParseInt(strings.Repeat("9", MaxIntDigits+1)); !errors.Is(err, ErrTooManyDigits) {
		t.Errorf("a number of too many digits gave %v", err)
	}
}

func TestFormatBigInt(t *testing.T) {
	ten := big.NewInt(10)
	largest := new(big.Int).Sub(new(big.Int).Exp(ten, big.NewInt(MaxIntDigits), nil), big.NewInt(1))
	if text, err := FormatBigInt(largest); err != nil || len(text) != MaxIntDigits {
		t.Errorf("the largest allowed number gave %d digits, %v", len(text), err)
	}
	for _, n := range []*big.Int{largest.Add(largest, big.NewInt(1)), new(big.Int).Lsh(ten, 100000)} {
		if _, err := FormatBigInt(n); !errors.Is(err, ErrTooManyDigits) {
			t.Errorf("a number of %d bits gave %v", n.BitLen(), err)
		}
	}
}

func TestParseFloat(t *testing.T) {
	good := map[string]float64{
		"1": 1, " 1.5 ": 1.5, ".5": 0.5, "5.": 5, "1e3": 1000, "1E-2": 0.01, "-2.5e+1": -25, "1_0.0_1": 10.01,
		"inf": math.Inf(1), "-Infinity": math.Inf(-1), "+INF": math.Inf(1), "1e400": math.Inf(1), "1e-400": 0, "٣.٥": 3.5,
	}
	for text, want := range good {
		if got, err := ParseFloat(text); err != nil || got != want {
			t.Errorf("ParseFloat(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	if got, err := ParseFloat("nan"); err != nil || !math.IsNaN(got) {
		t.Errorf("nan gave %v, %v", got, err)
	}
	for _, text := range []string{"", ".", "e5", "1e", "1e+", "0x1p3", "1..2", "1_.5", "a", "infin", "--1", "1e5.0", "1 .5", "1__0"} {
		if got, err := ParseFloat(text); err == nil {
			t.Errorf("ParseFloat(%q) = %v, want an error", text, got)
		}
	}
}

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"": "''", "a": "'a'", "it's": `"it's"`, `say "hi"`: `'say "hi"'`, `'"`: `'\'"'`, `a\b`: `'a\\b'`,
		"\n\r\t\a\x00\x7f": `'\n\r\t\x07\x00\x7f'`, "é": "'é'", "\u00a0": `'\xa0'`, "\u200b": `'\u200b'`,
		"\U0001f600": "'\U0001f600'", "\U000e0001": `'\U000e0001'`, "\u2028": `'\u2028'`, "\u00ad": `'\xad'`, "\ue000": `'\ue000'`,
	} {
		if got := Quote(text); got != want {
			t.Errorf("Quote(%q) = %s, want %s", text, got, want)
		}
	}
}

func TestSplitting(t *testing.T) {
	type result []string
	split := func(text, sep string, limit int) result {
		parts, err := Split(text, sep, limit)
		if err != nil {
			t.Fatal(err)
		}
		return parts
	}
	splitRight := func(text, sep string, limit int) result {
		parts, err := SplitRight(text, sep, limit)
		if err != nil {
			t.Fatal(err)
		}
		return parts
	}
	cases := []struct {
		name string
		got  result
		want result
	}{
		{"fields", Fields("  a \u2003b\x1cc  ", -1), result{"a", "b", "c"}},
		{"fields of nothing", Fields(" \n ", -1), result{}},
		{"fields, limit", Fields("  a  b  c  ", 1), result{"a", "b  c  "}},
		{"fields, limit 0", Fields("  a  b ", 0), result{"a  b "}},
		{"right fields", FieldsRight("  a  b  c  ", -1), result{"a", "b", "c"}},
		{"right fields, limit", FieldsRight("  a  b\u2003c  ", 1), result{"  a  b", "c"}},
		{"right fields, limit 0", FieldsRight("  a  b ", 0), result{"  a  b"}},
		{"split", split("a,,b", ",", -1), result{"a", "", "b"}},
		{"split, limit", split("a,b,c", ",", 1), result{"a", "b,c"}},
		{"split, limit 0", split("a,b", ",", 0), result{"a,b"}},
		{"split of nothing", split("", ",", -1), result{""}},
		{"right split", splitRight("a,,b", ",", -1), result{"a", "", "b"}},
		{"right split, limit", splitRight("a,b,c", ",", 1), result{"a,b", "c"}},
		{"right split, overlap", splitRight("aaa", "aa", -1), result{"a", ""}},
	}
	for _, c := range cases {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
	for _, f := range []func(string, string, int) ([]string, error){Split, SplitRight} {
		if _, err := f("a", "", -1); !errors.Is(err, ErrEmptySeparator) {
			t.Errorf("an empty separator gave %v", err)
		}
	}
}

func TestSplitJoinsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab,é")), 0, 20, -1).Draw(t, "text")
		limit := rapid.IntRange(-1, 4).Draw(t, "limit")
		for _, f := range []func(string, string, int) ([]string, error){Split, SplitRight} {
			parts, err := f(text, ",", limit)
			if err != nil || strings.Join(parts, ",") != text || limit >= 0 && len(parts) > limit+1 {
				t.Fatalf("%q split to %q, %v", text, parts, err)
			}
		}
	})
}

func TestTrim(t *testing.T) {
	chars, none := "ab", ""
	for _, c := range []struct{ got, want string }{
		{Trim(" \u3000x y\x1f", nil), "x y"}, {TrimLeft(" x ", nil), "x "}, {TrimRight(" x ", nil), " x"},
		{Trim("abxba", &chars), "x"}, {TrimLeft("abxba", &chars), "xba"}, {TrimRight("abxba", &chars), "abx"}, {Trim(" x ", &none), " x "},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestCase(t *testing.T) {
	for text, want := range map[string]string{"aB1": "AB1", "straße": "STRASSE", "ǆ": "Ǆ", "ﬁ": "FI", "éÀ": "ÉÀ", "ŉ": "ʼN", "\u0390": "\u0399\u0308\u0301"} {
		if got := Upper(text); got != want {
			t.Errorf("Upper(%q) = %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"AB1": "ab1", "İ": "i̇", "ΑΣ": "ας", "ΣΑΣ Σ": "σας σ", "ÀÉ": "àé", "ẞ": "ß"} {
		if got := Lower(text); got != want {
			t.Errorf("Lower(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestUnescape(t *testing.T) {
	for body, want := range map[string]string{
		``: "", `plain`: "plain", `\n\t\\\'\"\a\b\f\r\v`: "\n\t\\'\"\a\b\f\r\v", `\x41\u00e9\U0001F600`: "Aé😀", `\d`: `\d`, `\x4`: `\x4`,
		`\101\400\08`: "A\u0100\x008", `\777`: "\u01ff", `\N{LATIN SMALL LETTER A}`: "a", `\N{lf}`: "\n", `\N{}`: `\N{}`, `\N`: `\N`,
		`\N{CJK UNIFIED IDEOGRAPH-4E00}`: "一", `\N{HANGUL SYLLABLE GAGG}`: "갂", `\u12`: `\u12`, "\\x4\n": "\\x4\n", `\\n`: `\n`, `\`: `\`,
	} {
		if got, err := Unescape(body); err != nil || got != want {
			t.Errorf("Unescape(%s) = %q, %v, want %q", body, got, err, want)
		}
	}
	for _, body := range []string{`\xzz`, `ab\u12g4`, `\U00110000`, `\N{NO SUCH NAME}`, `\xéé`, `\N{CJK UNIFIED IDEOGRAPH-0041}`, `\N{HANGUL SYLLABLE Q}`} {
		_, err := Unescape(body)
		var fault *EscapeError
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), fault.Escape) {
			t.Errorf("Unescape(%s) gave %v, want an *EscapeError", body, err)
		}
	}
	_, err := Unescape(`é\n\xzz.`)
	var fault *EscapeError
	if !errors.As(err, &fault) || fault.Offset != 3 || fault.Escape != `\xzz` {
		t.Errorf("the fault is at %+v, want offset 3", fault)
	}
}

func TestRuneByNameOfHangul(t *testing.T) {
	for name, want := range map[string]rune{"HANGUL SYLLABLE GA": '가', "HANGUL SYLLABLE A": '아', "HANGUL SYLLABLE HIH": '힣', "HANGUL SYLLABLE GGWALG": '꽑'} {
		if got, ok := RuneByName(name); !ok || got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestDigitValueOfEveryScript(t *testing.T) {
	for r := rune(0x80); r <= utf8.MaxRune; r++ {
		value, ok := DigitValue(r)
		if !ok {
			continue
		}
		if next, nextOK := DigitValue(r + 1); value != 9 && (!nextOK || next != value+1) {
			t.Errorf("%U has the value %d and is followed by %d, %v", r, value, next, nextOK)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"select", "selectMany", "where", "toUpper", "toLower", "len"}
	for name, want := range map[string]string{"selct": "select", "Where": "where", "toupper": "toUpper", "wehre": "where", "ln": "len"} {
		if got, ok := Nearest(name, names); !ok || got != want {
			t.Errorf("Nearest(%q) = %q, %v, want %q", name, got, ok, want)
		}
	}
	for _, name := range []string{"xyz", "len", "completelyDifferent"} {
		if got, ok := Nearest(name, names); ok {
			t.Errorf("Nearest(%q) = %q, want none", name, got)
		}
	}
}

func FuzzUnescape(f *testing.F) {
	for _, seed := range []string{`\n`, `\x4`, `\N{LF}`, `\777`, `\u12345`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		text, err := Unescape(body)
		if err == nil && utf8.ValidString(body) && !utf8.ValidString(text) {
			t.Errorf("%q decodes to invalid text %q", body, text)
		}
	})
}
