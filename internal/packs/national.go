package packs

import (
	"bytes"
	"strings"
)

// National numbers of persons. Each is recognised by its usual way of writing, by a
// date in it where it has one, and by its check digits, which make a random number of
// that shape a rare find: weighted sums modulo 10 or 11 (br, ch, pl, cn by ISO 7064 MOD
// 11-2), a letter by the remainder of 23 or 31 (es, fi), 97 less a remainder (fr),
// Verhoeff's scheme (in), a sum over odd and even places (it). Numbers without check
// digits are not looked for.

// This file has the national numbers of persons that carry a checksum.

// dated reports whether digits are a month and a day.
func dated(month, day int) bool { return month >= 1 && month <= 12 && day >= 1 && day <= 31 }

// brazilian reports whether it is a CPF, as it is written: with dots and a hyphen.
func brazilian(_ string, d digits) bool {
	first := weighted(d[:], 10, 9, 8, 7, 6, 5, 4, 3, 2) * 10 % 11 % 10
	second := weighted(d[:], 11, 10, 9, 8, 7, 6, 5, 4, 3, 2) * 10 % 11 % 10
	same := bytes.Count(d[:11], d[:1]) == 11
	return !same && first == int(d[9]) && second == int(d[10])
}

// swiss reports whether it is an AHV number (EAN-13 with the country's 756).
func swiss(_ string, d digits) bool {
	return weighted(d[:], 100, 10, 1) == 756 && weighted(d[:], 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1)%10 == 0
}

// chinese reports whether it is a resident identity number (GB 11643, ISO 7064 MOD 11-2).
func chinese(s string, d digits) bool {
	if s[17] == 'X' {
		d[17] = 10
	}
	century := weighted(d[6:], 10, 1)
	return (century == 19 || century == 20) && dated(weighted(d[10:], 10, 1), weighted(d[12:], 10, 1)) &&
		weighted(d[:], 7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2, 1)%11 == 1
}

// spanish reports whether it is a DNI, or a NIE, which begins with X, Y or Z.
func spanish(s string, d digits) bool {
	number := weighted(d[:], 10_000_000, 1_000_000, 100_000, 10_000, 1000, 100, 10, 1)
	if i := strings.IndexByte("XYZ", s[0]); i >= 0 {
		number = i*10_000_000 + number/10
	}
	return "TRWAGMYFPDXBNJZSQVHLCKE"[number%23] == s[8]
}

// finnish finds a henkilötunnus, with the signs for a century of before and after
// 2023.
func finnish(s string, at int) (start, end int) {
	const length = 11
	if end = at + length; end > len(s) || strings.IndexByte("+-ABCDEFUVWXY", s[at+6]) < 0 || !apart(s, at, end) {
		return 0, 0
	}
	number := 0
	for i := range length - 1 {
		if c := s[at+i]; i != 6 {
			if !digitBytes[c] {
				return 0, 0
			}
			number = number*10 + int(c-'0')
		}
	}
	day, month := number/10_000_000, number/100_000%100
	if !dated(month, day) || "0123456789ABCDEFHJKLMNPRSTUVWXY"[number%31] != s[end-1] {
		return 0, 0
	}
	return at, end
}

// french reports whether it is a NIR: 13 digits and a key of two, 97 less the remainder of what
// is before it. Departments 2A and 2B are not looked for.
func french(_ string, d digits) bool {
	if month := weighted(d[3:], 10, 1); month < 1 || month > 12 && month < 20 || month > 42 && month < 50 {
		return false
	}
	rest := 0
	for _, x := range d[:13] {
		rest = (rest*10 + int(x)) % 97
	}
	return 97-rest == weighted(d[13:], 10, 1)
}

// Tables of Verhoeff's check digit (1969): the dihedral group of order ten, and
// the permutation.
var (
	verhoeffProduct = [10]string{"0123456789", "1234067895", "2340178956", "3401289567", "4012395678", "5987604321", "6598710432", "7659821043", "8765932104", "9876543210"}
	verhoeffTurn    = [8]string{"0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258"}
)

// indian finds an Aadhaar number, as it is written: in groups of four.
func indian(s string, at int) (start, end int) {
	var d [12]byte
	if end = shaped(s, at, "9999 9999 9999", d[:]); end == 0 {
		return 0, 0
	}
	if end+1 < len(s) && s[end] == ' ' && digitBytes[s[end+1]] || at > 1 && s[at-1] == ' ' && digitBytes[s[at-2]] {
		return 0, 0 // a group among others
	}
	check := byte('0')
	for i := range d {
		check = verhoeffProduct[check-'0'][verhoeffTurn[i%8][d[len(d)-1-i]]-'0']
	}
	if check != '0' {
		return 0, 0
	}
	return at, end
}

// italian reports whether it is a codice fiscale.
func italian(s string, d digits) bool {
	day := weighted(d[2:], 10, 1)
	if strings.IndexByte("ABCDEHLMPRST", s[8]) < 0 || day < 1 || day > 31 && day < 41 || day > 71 {
		return false
	}
	// What a sign counts where its place is odd: of 0 to 9, and of A to Z.
	const odd = "BAFHJNPRTV" + "BAFHJNPRTVCESULDGIMOQKWZYX"
	sum := 0
	for i, c := range []byte(s[:15]) {
		value := int(c - 'A')
		if digitBytes[c] {
			value = int(c - '0')
		}
		if i%2 == 0 {
			if !digitBytes[c] {
				value += 10
			}
			value = int(odd[value] - 'A')
		}
		sum += value
	}
	return int(s[15]-'A') == sum%26
}

// polish reports whether it is a PESEL, whose month tells the century.
func polish(_ string, d digits) bool {
	return dated(weighted(d[2:], 10, 1)%20, weighted(d[4:], 10, 1)) && weighted(d[:], 1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)%10 == 0
}
