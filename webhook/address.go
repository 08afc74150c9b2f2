package webhook

import (
	"net/netip"
	"slices"
)

// special are the blocks of the IANA IPv4 and IPv6 Special-Purpose Address
// Registries (RFC 6890 and its updates) that no public service lives in, and
// multicast. Of IPv6, everything outside 2000::/3 is reserved too.
var special = []struct {
	kind   string
	blocks []netip.Prefix
}{
	{"unspecified", blocks("0.0.0.0/8", "::/128")},
	{"loopback", blocks("127.0.0.0/8", "::1/128")},
	{"private", blocks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")},
	{"link-local", blocks("169.254.0.0/16", "fe80::/10")},
	{"unique-local", blocks("fc00::/7")},
	{"site-local", blocks("fec0::/10")},
	{"shared, carrier-grade NAT", blocks("100.64.0.0/10")},
	{"local NAT64", blocks("64:ff9b:1::/48")},
	{"multicast", blocks("224.0.0.0/4", "ff00::/8")},
	{"documentation", blocks("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20")},
	{"benchmarking", blocks("198.18.0.0/15", "2001:2::/48")},
	{"discard", blocks("100::/64")},
	// 2001::/23 holds Teredo and ORCHID.
	{"reserved", blocks("192.0.0.0/24", "192.88.99.0/24", "240.0.0.0/4", "2001::/23")},
}

func blocks(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// Blocks of IPv6 addresses that are judged by the IPv4 address in them, where
// traffic may end up, and the block that all others must be in.
var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
	global    = netip.MustParsePrefix("2000::/3")
)

// kindOf returns why a bare address is not a public one, or "".
func kindOf(a netip.Addr) string {
	for _, s := range special {
		if within(s.blocks, a) {
			return s.kind
		}
	}
	b := a.As16()
	switch {
	case a.Is4():
		return ""
	case nat64.Contains(a):
		return kindOf(netip.AddrFrom4([4]byte(b[12:16])))
	case sixToFour.Contains(a):
		return kindOf(netip.AddrFrom4([4]byte(b[2:6])))
	case !global.Contains(a):
		return "reserved"
	}
	return ""
}

func within(blocks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(blocks, func(p netip.Prefix) bool { return p.Contains(a) })
}
