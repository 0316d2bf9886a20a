package pytime

import (
	"math/big"
	"strings"
)

// maxDigits is how long a number may be: the time to read it grows with the square of that. Python reads no longer ones either.
const maxDigits = 4300

// number takes a token that is a number, with the tokens around it that tell what it counts.
func (p *freeParser) number(token string) (bool, error) {
	switch strings.ToLower(token) {
	case "nan", "inf", "infinity":
		return true, errMalformed // a number to Python, and not a usable one
	}
	if token[0] < '0' || token[0] > '9' {
		return false, nil
	}
	if len(token) > maxDigits {
		return true, errMalformed
	}
	value, ok := new(big.Rat).SetString(token)
	if !ok {
		return true, errMalformed
	}
	for _, form := range []func(string, *big.Rat) (bool, error){
		p.hourAfterDate, p.sixDigits, p.wholeDate, p.withUnit, p.clock, p.separated, p.followedByJump, p.beforeHalf,
	} {
		if taken, err := form(token, value); taken || err != nil {
			return true, err
		}
	}
	if !p.date.couldBeDay(value) {
		return true, errMalformed
	}
	return true, p.date.addValue(value)
}

// hourAfterDate takes the 23 or 2359 of 19990101T2359.
func (p *freeParser) hourAfterDate(token string, _ *big.Rat) (bool, error) {
	if len(p.date.values) != 3 || len(token) != 2 && len(token) != 4 || p.hour != nil {
		return false, nil
	}
	if p.left() > 0 {
		if _, unit := lookUp(clockUnits, p.token(1)); unit || p.token(1) == ":" {
			return false, nil
		}
	}
	if err := p.set(&p.hour, token[:2]); err != nil || len(token) == 2 {
		return true, err
	}
	return true, p.set(&p.minute, token[2:])
}

// sixDigits takes YYMMDD, or HHMMSS[.ss] once there is a date.
func (p *freeParser) sixDigits(token string, _ *big.Rat) (bool, error) {
	if len(token) != 6 && strings.IndexByte(token, '.') != 6 {
		return false, nil
	}
	if len(p.date.values) == 0 && !strings.Contains(token, ".") {
		return true, p.date.addAll(token[:2], token[2:4], token[4:])
	}
	if err := p.set(&p.hour, token[:2]); err != nil {
		return true, err
	}
	if err := p.set(&p.minute, token[2:4]); err != nil {
		return true, err
	}
	return true, p.setSeconds(token[4:])
}

// wholeDate takes YYYYMMDD[hhmm[ss]].
func (p *freeParser) wholeDate(token string, _ *big.Rat) (bool, error) {
	if len(token) != 8 && len(token) != 12 && len(token) != 14 {
		return false, nil
	}
	if err := p.date.add(token[:4], asYear); err != nil {
		return true, err
	}
	if err := p.date.addAll(token[4:6], token[6:8]); err != nil || len(token) == 8 {
		return true, err
	}
	if err := p.set(&p.hour, token[8:10]); err != nil {
		return true, err
	}
	if err := p.set(&p.minute, token[10:12]); err != nil || len(token) == 12 {
		return true, err
	}
	return true, p.set(&p.second, token[12:])
}

// withUnit takes a number with h, m or s after it, or with the next smaller unit implied by the one
// before it, as the 04 of 12h04.
func (p *freeParser) withUnit(token string, value *big.Rat) (bool, error) {
	unit, ahead, ok := p.findUnit()
	if !ok {
		return false, nil
	}
	p.pos += ahead
	switch unit {
	case 0:
		p.hour = whole(value)
		if !value.IsInt() {
			minutes := fractionOf(value, 60)
			p.minute = &minutes
		}
	case 1:
		p.setMinutes(value)
	case 2:
		return true, p.setSeconds(token)
	}
	return true, nil
}

// findUnit returns the unit of the current number and how far ahead its label stands.
func (p *freeParser) findUnit() (unit int64, ahead int, found bool) {
	if unit, ok := lookUp(clockUnits, p.token(1)); ok {
		return unit, 1, true
	}
	if unit, ok := lookUp(clockUnits, p.token(2)); ok && p.token(1) == " " {
		return unit, 2, true
	}
	if unit, ok := lookUp(clockUnits, p.token(-1)); ok {
		return unit + 1, 0, true
	}
	if unit, ok := lookUp(clockUnits, p.token(-2)); ok && p.left() == 0 && p.token(-1) == " " {
		return unit + 1, 0, true
	}
	return 0, 0, false
}

// clock takes HH:MM[:SS[.ss]].
func (p *freeParser) clock(_ string, value *big.Rat) (bool, error) {
	if p.left() < 2 || p.token(1) != ":" {
		return false, nil
	}
	p.hour = whole(value)
	if !startsWithDigit(p.token(2)) {
		return true, errMalformed
	}
	minutes, ok := new(big.Rat).SetString(p.token(2))
	if !ok {
		return true, errMalformed
	}
	p.setMinutes(minutes)
	if p.left() >= 4 && p.token(3) == ":" {
		if err := p.setSeconds(p.token(4)); err != nil {
			return true, err
		}
		p.pos += 2
	}
	p.pos += 2
	return true, nil
}

// separated takes 01-01[-01], 01/Jan/01, 1.1.2001 and the like.
func (p *freeParser) separated(token string, _ *big.Rat) (bool, error) {
	separator := p.token(1)
	if separator != "-" && separator != "/" && separator != "." {
		return false, nil
	}
	if err := p.date.add(token, asAny); err != nil {
		return true, err
	}
	if p.left() >= 2 && !isJump(p.token(2)) {
		if err := p.date.addMember(p.token(2), false); err != nil {
			return true, err
		}
		if p.left() >= 3 && p.token(3) == separator {
			if err := p.date.addMember(p.token(4), true); err != nil {
				return true, err
			}
			p.pos += 2
		}
		p.pos++
	}
	p.pos++
	return true, nil
}

// followedByJump takes a number that stands alone: an hour when am or pm follows, else a part of a date.
func (p *freeParser) followedByJump(_ string, value *big.Rat) (bool, error) {
	if p.left() > 0 && !isJump(p.token(1)) {
		return false, nil
	}
	if half, ok := lookUp(dayHalves, p.token(2)); ok {
		p.setHour(*whole(value), half)
		p.pos++
	} else if err := p.date.addValue(value); err != nil {
		return true, err
	}
	p.pos++
	return true, nil
}

// beforeHalf takes the 12 of 12am.
func (p *freeParser) beforeHalf(_ string, value *big.Rat) (bool, error) {
	half, ok := lookUp(dayHalves, p.token(1))
	if !ok || value.Cmp(big.NewRat(24, 1)) >= 0 {
		return false, nil
	}
	p.setHour(*whole(value), half)
	p.pos++
	return true, nil
}

func (p *freeParser) set(field **int64, digits string) error {
	n, err := atoi(digits)
	if err == nil {
		*field = &n
	}
	return err
}

// setMinutes sets the minute, and the second from a fraction of a minute.
func (p *freeParser) setMinutes(value *big.Rat) {
	p.minute = whole(value)
	p.second = nil
	if !value.IsInt() {
		seconds := fractionOf(value, 60)
		p.second = &seconds
	}
}

// setSeconds sets second and microsecond from SS[.ffffff].
func (p *freeParser) setSeconds(text string) error {
	seconds, fraction, found := strings.Cut(text, ".")
	if err := p.set(&p.second, seconds); err != nil {
		return err
	}
	if !found {
		fraction = "0"
	}
	return p.set(&p.microsecond, (fraction + "000000")[:6])
}

func startsWithDigit(token string) bool { return token != "" && token[0] >= '0' && token[0] <= '9' }

// whole returns the integral part of a value that is not negative.
func whole(value *big.Rat) *int64 {
	n := new(big.Int).Quo(value.Num(), value.Denom())
	result := int64(1 << 40)
	if n.IsInt64() {
		result = n.Int64()
	}
	return &result
}

// fractionOf returns the fraction of the value counted in parts of which so many make one, cut off.
func fractionOf(value *big.Rat, parts int64) int64 {
	rest := new(big.Int).Rem(value.Num(), value.Denom())
	rest.Mul(rest, big.NewInt(parts))
	return rest.Quo(rest, value.Denom()).Int64()
}
