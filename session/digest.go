package session

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/dialai/dialai/internal/jsontext"
	"github.com/dialai/dialai/machine"
	"github.com/dialai/dialai/specialist"
)

// The digest of a question stands for what a ruling is about. It is SHA-256 of the
// form of RFC 8785 of
//
//	{"v":1,sessionId,roundId,machineDigest,state,data,
//	 transitions:[{name,target,irreversible}],proposals,rulings}
//
// where transitions are the legal ones, proposals the ids in the round's order, null
// while they are withheld from whoever looks, and rulings those that are pending, as
// {specialistId,transitionName,metaJson?}, or their number while they are withheld. So it
// is the same on every machine, and another one when anything changes that whoever
// rules has seen. Numbers in data are compared as float64 tells them apart.

// Digest returns the digest of the session's question; the members are written in
// the order in which the RFC sorts them.
func (s *Session) Digest(proposals []*specialist.Proposal, withheld bool) (string, error) {
	data, err := jsontext.Canonical(s.Facts().Data)
	if err != nil {
		return "", err
	}
	key := s.Key()
	w := object(nil)
	w.raw("data", data)
	w.str("machineDigest", s.Machine().Digest())
	w.name("proposals")
	w.dst = appendProposalIDs(w.dst, key, proposals, withheld)
	w.str("roundId", key.ID())
	w.name("rulings")
	if w.dst, err = s.appendRulings(w.dst); err != nil {
		return "", err
	}
	w.str("sessionId", s.ID.String())
	w.str("state", s.State.Name)
	w.name("transitions")
	w.dst = s.appendLegal(w.dst)
	w.int("v", 1)
	sum := sha256.Sum256(w.end())
	return hex.EncodeToString(sum[:]), nil
}

// appendRulings appends the pending rulings, or how many there are.
func (s *Session) appendRulings(dst []byte) ([]byte, error) {
	list, concealed := s.PendingRulings()
	if concealed {
		return strconv.AppendInt(dst, int64(len(list)), 10), nil
	}
	dst = append(dst, '[')
	for i, r := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		w := object(dst)
		if r.MetaJSON != nil {
			payload, err := jsontext.Canonical(r.MetaJSON)
			if err != nil {
				return nil, err
			}
			w.raw("metaJson", payload)
		}
		w.str("specialistId", r.SpecialistID)
		w.str("transitionName", r.Transition.Name)
		dst = w.end()
	}
	return append(dst, ']'), nil
}

func appendProposalIDs(dst []byte, key specialist.RoundKey, proposals []*specialist.Proposal, withheld bool) []byte {
	if withheld {
		return append(dst, "null"...)
	}
	dst = append(dst, '[')
	for i, p := range proposals {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendString(dst, key.ProposalID(p.Arrival))
	}
	return append(dst, ']')
}

// appendLegal appends the transitions that may be chosen.
func (s *Session) appendLegal(dst []byte) []byte {
	dst = append(dst, '[')
	for i, t := range s.Offered().Transitions {
		if i > 0 {
			dst = append(dst, ',')
		}
		w := object(dst)
		w.bool("irreversible", t.Irreversible)
		w.str("name", t.Name)
		w.str("target", t.Target)
		dst = w.end()
	}
	return append(dst, ']')
}

// DigestPrefix is how many hex digits of a digest are enough to state it.
const DigestPrefix = 12

// FitsDigest returns the digest that a text is, or begins, if it is that of the
// question as its author sees it, or as nobody in particular does, or, once somebody
// unnamed has looked at what is withheld, as they did; else "".
func (s *Session) FitsDigest(given string, author machine.SpecialistID, proposals []*specialist.Proposal) (string, error) {
	views := []bool{s.Withheld(author) != "", s.Withheld("") != ""}
	if s.RevealedTo("") {
		views = append(views, false)
	}
	for _, withheld := range views {
		digest, err := s.Digest(proposals, withheld)
		if err != nil || len(given) >= DigestPrefix && strings.HasPrefix(digest, strings.ToLower(given)) {
			return digest, err
		}
	}
	return "", nil
}
