package packs

import (
	"slices"
	"strings"

	"github.com/dialai/dialai/internal/text"
)

// Data about persons by shape and, where there is one, by checksum: a shape alone would
// find every number. Cards are held to the networks' prefixes and lengths and to the
// check digit of ISO/IEC 7812; bank accounts to the length of their country and ISO
// 13616; phone numbers to E.164 or the groups of the North American plan; e-mail
// addresses to RFC 5321, without domains that belong to nobody (RFC 2606). National
// numbers are in national.go.
//
// A find must stand alone (apart): no piece of a word, of a longer number, or of a name
// with hyphens and dots such as a version's.

// piiRules find data about persons by its shape and, where its kind has one, by
// its checksum. National numbers without a checksum are not looked for: they
// look like any number.
var piiRules = newRuleSet([]detector{
	{"email", "@", "", email},
	{"iban", letters, "", iban},
	{"phone", "+", "", phone},
	{"card_number", "23456", "", written(card, cardShapes...)},
	{"us_phone", "(23456789", "", written(americanPhone, "(999) 999-9999", "(999)999-9999", "999-999-9999", "999.999.9999")},
	{"br_cpf", numerals, "", written(brazilian, "999.999.999-99")},
	{"ch_ahv", "7", "", written(swiss, "999.9999.9999.99", "9999999999999")},
	{"cn_resident_id", "123456", "", written(chinese, "999999999999999999", "99999999999999999X")},
	{"es_dni", numerals + "XYZ", "", written(spanish, "99999999A", "X9999999A", "Y9999999A", "Z9999999A")},
	{"fi_hetu", "0123", "", finnish},
	{"fr_nir", "12", "", written(french, "9 99 99 99 999 999 99", "999999999999999")},
	{"in_aadhaar", "23456789", "", indian},
	{"it_codice_fiscale", letters, "", written(italian, "AAAAAA99A99A999A")},
	{"pl_pesel", numerals, "", written(polish, "99999999999")},
})

const (
	numerals = "0123456789"
	letters  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// digits are those of a number in one of its shapes, and zeros behind them.
type digits [19]byte

// written finds what has one of some shapes and holds. holds is given the digits by
// value, so that looking for them allocates nothing.
func written(holds func(s string, d digits) bool, shapes ...string) func(s string, at int) (start, end int) {
	return func(s string, at int) (start, end int) {
		for _, shape := range shapes {
			var d digits
			if end = shaped(s, at, shape, d[:]); end > 0 && holds(s[at:end], d) {
				return at, end
			}
		}
		return 0, 0
	}
}

// apart reports whether s[start:end] stands alone: it is no piece of a word, of
// a longer number, or of names with hyphens and dots such as those of versions.
func apart(s string, start, end int) bool {
	before := start == 0 || !joins(s, start-1) && (start < 2 || !linking(s[start-1]) || !joins(s, start-2))
	after := end >= len(s) || !joins(s, end) && (end+1 >= len(s) || !linking(s[end]) || !joins(s, end+1))
	return before && after
}

func joins(s string, at int) bool { return text.WordByte[s[at]] || s[at] == '_' }

// linking reports whether a byte holds the parts of one name together.
func linking(c byte) bool { return c == '-' || c == '.' || c == '/' }

// shaped returns the end of what has a shape at at, 0 if it does not have it. In
// a shape 9 stands for a digit, A for a capital letter and everything else for
// itself. The digits are put into into, which must have room.
func shaped(s string, at int, shape string, into []byte) (end int) {
	if len(s)-at < len(shape) {
		return 0
	}
	for i := range len(shape) {
		c := s[at+i]
		switch shape[i] {
		case '9':
			if !digitBytes[c] {
				return 0
			}
			into[0] = c - '0'
			into = into[1:]
		case 'A':
			if !upperBytes[c] {
				return 0
			}
		default:
			if c != shape[i] {
				return 0
			}
		}
	}
	if end = at + len(shape); !apart(s, at, end) {
		return 0
	}
	return end
}

// weighted returns the sum of the digits, each times its weight.
func weighted(digits []byte, weights ...int) (sum int) {
	for i, w := range weights {
		sum += int(digits[i]) * w
	}
	return sum
}

// luhn reports whether digits end in the check digit of ISO/IEC 7812.
func luhn(digits []byte) bool {
	sum := 0
	for i, d := range digits {
		v := int(d)
		if (len(digits)-i)%2 == 0 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
	}
	return sum%10 == 0
}

// Most bytes of a local part and of a domain (RFC 5321), and how far they are
// looked for: what is longer is no address, but must not be cut in two either.
const maxAddress = 320

var (
	localBytes  = bytesIn("0-9A-Za-z!#$%&'*+/=?^_`{|}~.-")
	domainBytes = bytesIn("0-9A-Za-z.-")
)

// noPersons are the ends of domains that belong to nobody (RFC 2606), and of
// files that have an @ in their names.
var noPersons = []string{"example.com", "example.org", "example.net", ".example", ".test", ".invalid", ".localhost", ".local", ".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp"}

func email(s string, at int) (start, end int) {
	start, end = at, domainBytes.run(s, at+1, maxAddress)
	for start > 0 && at-start < maxAddress && localBytes[s[start-1]] {
		start--
	}
	for start < at && !alnumBytes[s[start]] && s[start] != '_' && s[start] != '+' {
		start++ // a quotation mark before it
	}
	for end > at+1 && !alnumBytes[s[end-1]] {
		end-- // a full stop after it
	}
	if start == at || end == at+1 || !alnumBytes[s[at+1]] || s[at-1] == '.' || wordAt(s, end) {
		return 0, 0
	}
	domain := strings.ToLower(s[at+1 : end])
	dot := strings.LastIndexByte(domain, '.')
	if dot < 1 || len(domain)-dot < 3 || lowerBytes.run(domain, dot+1, len(domain)) < len(domain) && !strings.HasPrefix(domain[dot+1:], "xn--") || strings.Contains(domain, "..") {
		return 0, 0
	}
	if s[start:at] == "git" && end < len(s) && s[end] == ':' {
		return 0, 0 // a repository
	}
	for _, tail := range noPersons {
		if domain == tail || strings.HasSuffix(domain, tail) && (tail[0] == '.' || domain[len(domain)-len(tail)-1] == '.') {
			return 0, 0
		}
	}
	return start, end
}

// phone finds numbers in the international form of E.164: a plus sign and 8 to
// 15 digits in groups, or at least 10 without.
func phone(s string, at int) (start, end int) {
	if at > 0 && (joins(s, at-1) || s[at-1] == '+') || at+1 >= len(s) || s[at+1] < '1' || s[at+1] > '9' {
		return 0, 0
	}
	digits, gap := 0, 0
	for i := at + 1; i < len(s) && i < at+40; i++ {
		if digitBytes[s[i]] {
			digits, gap = digits+1, 0
			last := i+1 == len(s) || !digitBytes[s[i+1]]
			grouped := i+1-at > digits+1
			if last && digits <= 15 && digits >= 8 && (grouped || digits >= 10) && !wordAt(s, i+1) {
				end = i + 1
			}
			continue
		}
		if gap++; gap > 2 || strings.IndexByte(" ()./-", s[i]) < 0 {
			break
		}
	}
	return at, end
}

// americanPhone reports whether it is a number of the North American plan, written in
// groups. Those that are set aside for fiction are nobody's.
func americanPhone(_ string, d digits) bool {
	fiction := d[3] == 5 && d[4] == 5 && d[5] == 5 && d[6] == 0 && d[7] == 1
	return d[0] >= 2 && d[3] >= 2 && d[1] != 9 && !fiction
}

// cardShapes are how card numbers are written.
var cardShapes = []string{
	"9999 9999 9999 9999 999", "9999-9999-9999-9999-999", "9999999999999999999",
	"9999 9999 9999 9999", "9999-9999-9999-9999", "9999999999999999",
	"9999 999999 99999", "9999-999999-99999", "999999999999999",
	"9999 999999 9999", "9999-999999-9999", "99999999999999", "9999999999999",
}

// card reports whether it is the number of a payment card: of a known issuer, with a
// check digit.
func card(s string, d digits) bool {
	n := len(s) - strings.Count(s, " ") - strings.Count(s, "-")
	return issuer(d[:n]) && luhn(d[:n])
}

// issuer reports whether a network gives out card numbers that begin so, of that
// length.
func issuer(d []byte) bool {
	four, n := weighted(d, 1000, 100, 10, 1), len(d)
	two := four / 100
	switch {
	case d[0] == 4: // Visa
		return n == 13 || n == 16 || n == 19
	case two >= 51 && two <= 55, four >= 2221 && four <= 2720: // Mastercard
		return n == 16
	case two == 34, two == 37: // American Express
		return n == 15
	case two == 36, two == 38, two == 39, four >= 3000 && four <= 3059: // Diners Club
		return n == 14
	case four == 6011, two == 65, four >= 6440 && four <= 6499, four >= 3528 && four <= 3589, two == 62: // Discover, JCB, UnionPay
		return n == 16 || n == 19
	case two == 50, two >= 56 && two <= 58, two == 67: // Maestro
		return n >= 13
	}
	return false
}

// ibanLengths says how long the IBANs of each country are.
const ibanLengths = "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 SK24 SM27 TL23 TN24 TR26 UA29 VA22 VG24 XK20 "

// iban finds bank account numbers (ISO 13616), with blanks between groups of four
// or without.
func iban(s string, at int) (start, end int) {
	if len(s)-at < 15 || !upperBytes[s[at+1]] || !digitBytes[s[at+2]] || !digitBytes[s[at+3]] || at > 0 && joins(s, at-1) {
		return 0, 0
	}
	country := strings.Index(ibanLengths, s[at:at+2])
	if country < 0 || country%5 != 0 {
		return 0, 0
	}
	length := int(ibanLengths[country+2]-'0')*10 + int(ibanLengths[country+3]-'0')
	var text [34]byte
	n, end := 0, at
	for ; n < length && end < len(s); end++ {
		switch c := s[end]; {
		case digitBytes[c] || upperBytes[c]:
			text[n] = c
			n++
		case c != ' ' || n%4 != 0 || s[end-1] == ' ':
			return 0, 0
		}
	}
	if n < length || end < len(s) && joins(s, end) || mod97(slices.Concat(text[4:length], text[:4])) != 1 {
		return 0, 0
	}
	return at, end
}

// mod97 returns the remainder of digits and letters, where A is 10 and Z is 35.
func mod97(text []byte) (rest int) {
	for _, c := range text {
		if digitBytes[c] {
			rest = (rest*10 + int(c-'0')) % 97
		} else {
			rest = (rest*100 + int(c-'A') + 10) % 97
		}
	}
	return rest
}
