package pytime

import (
	"regexp"
	"strconv"
)

var isoText = regexp.MustCompile(`^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,6})\d*)?)?)?(Z|[+-]\d\d:?\d\d(?::?\d\d(?:\.\d{1,6})?)?)?$`)

// ParseISO reads a date in ISO 8601, the form in which dates travel in JSON. Without an offset the date is
// naive. What has another form is a ValueError.
func ParseISO(text string) (DateTime, error) {
	match := isoText.FindStringSubmatch(text)
	if match == nil {
		return DateTime{}, fail(ValueError, "%q is no date in ISO 8601", text)
	}
	var parts [7]int64
	for i := range parts {
		digits := match[i+1]
		if i == 6 && digits != "" {
			digits = (digits + "000000")[:6]
		}
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
			parts[i] = n
		}
	}
	var zone *Zone
	if match[8] != "" {
		offset, err := parseOffset(match[8])
		if err != nil {
			return DateTime{}, err
		}
		if zone, err = plainZone(offset, ""); err != nil {
			return DateTime{}, err
		}
	}
	return New(Fields{parts[0], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6]}, zone)
}
