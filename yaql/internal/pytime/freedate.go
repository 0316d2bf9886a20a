package pytime

import (
	"math/big"
	"strconv"
)

// dateNumbers are up to three numbers of which one is the year, one the month and one the day. Names,
// four digits and sizes tell which; else the order decides.
type dateNumbers struct {
	values          []int64
	yearAt, monthAt int // -1 while not known
	century         bool
}

// What a number is known to be when it is added.
const (
	asAny = iota
	asYear
	asMonth
)

func newDateNumbers() dateNumbers { return dateNumbers{yearAt: -1, monthAt: -1} }

// add takes a number by its digits: more than two of them make it a year.
func (d *dateNumbers) add(digits string, role int) error {
	n, err := atoi(digits)
	if err != nil {
		return err
	}
	return d.append(n, len(digits) > 2, role)
}

// addValue takes a number by its value: more than a hundred makes it a year.
func (d *dateNumbers) addValue(value *big.Rat) error {
	return d.append(*whole(value), value.Cmp(big.NewRat(100, 1)) > 0, asAny)
}

func (d *dateNumbers) addAll(parts ...string) error {
	for _, part := range parts {
		if err := d.add(part, asAny); err != nil {
			return err
		}
	}
	return nil
}

// addMember takes a part of a date with separators, which may be the name of a month. A last member
// may have any digits that a number has.
func (d *dateNumbers) addMember(token string, last bool) error {
	if month, ok := lookUp(months, token); ok {
		return d.add(strconv.FormatInt(month+1, 10), asMonth)
	}
	if !last && !isDigits(token) {
		return errMalformed
	}
	return d.add(token, asAny)
}

func (d *dateNumbers) append(n int64, long bool, role int) error {
	if long {
		d.century = true
		if role == asMonth {
			return errMalformed
		}
		role = asYear
	}
	d.values = append(d.values, n)
	place := map[int]*int{asYear: &d.yearAt, asMonth: &d.monthAt}[role]
	if place == nil {
		return nil
	}
	if *place >= 0 {
		return errMalformed
	}
	*place = len(d.values) - 1
	return nil
}

// couldBeDay reports whether a day of that number exists in what is known of the date.
func (d *dateNumbers) couldBeDay(value *big.Rat) bool {
	last := int64(31)
	if d.monthAt >= 0 {
		year := int64(2000)
		if d.yearAt >= 0 {
			year = d.values[d.yearAt]
		}
		last = daysIn(year, d.values[d.monthAt])
	}
	return value.Cmp(big.NewRat(1, 1)) >= 0 && value.Cmp(big.NewRat(last, 1)) <= 0
}

// resolve tells the numbers apart. What the text did not tell is nil.
func (d *dateNumbers) resolve() (year, month, day *int64, err error) {
	order, err := d.order()
	if err != nil {
		return nil, nil, nil, err
	}
	for i, role := range order {
		value := &d.values[i]
		switch role {
		case 'y':
			year = value
		case 'm':
			month = value
		case 'd':
			day = value
		}
	}
	return year, month, day, nil
}

// order returns one of the letters y, m and d for each number.
func (d *dateNumbers) order() (string, error) {
	switch len(d.values) {
	case 0:
		return "", nil
	case 1:
		return d.orderOfOne(), nil
	case 2:
		return d.orderOfTwo(), nil
	case 3:
		return d.orderOfThree(), nil
	}
	return "", errMalformed
}

func (d *dateNumbers) large(i int) bool { return d.values[i] > 31 }

func (d *dateNumbers) orderOfOne() string {
	switch {
	case d.monthAt == 0:
		return "m"
	case d.yearAt == 0 || d.large(0):
		return "y"
	}
	return "d"
}

func (d *dateNumbers) orderOfTwo() string {
	other := "d"
	if d.monthAt >= 0 && (d.yearAt >= 0 || d.large(1-d.monthAt)) {
		other = "y"
	}
	switch {
	case d.monthAt == 0:
		return "m" + other
	case d.monthAt == 1:
		return other + "m"
	case d.large(0):
		return "ym"
	case d.large(1):
		return "my"
	}
	return "md"
}

func (d *dateNumbers) orderOfThree() string {
	if d.monthAt >= 0 && d.yearAt >= 0 {
		order := []byte("ddd")
		order[d.yearAt], order[d.monthAt] = 'y', 'm'
		return string(order)
	}
	switch d.monthAt {
	case 0:
		return d.yearInMiddle("myd", "mdy")
	case 1:
		if d.large(0) {
			return "ymd"
		}
		return "dmy"
	case 2:
		return d.yearInMiddle("dym", "ydm")
	}
	switch {
	case d.large(0) || d.yearAt == 0:
		return "ymd"
	case d.values[0] > 12:
		return "dmy"
	}
	return "mdy"
}

// yearInMiddle picks the order by whether the number in the middle can only be a year.
func (d *dateNumbers) yearInMiddle(yes, no string) string {
	if d.large(1) {
		return yes
	}
	return no
}
