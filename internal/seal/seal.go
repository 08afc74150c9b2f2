// Package seal keeps texts from whoever does not have a server's key.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dialai/dialai/internal/files"
)

// What a server gives out of its hands and takes back, or keeps where others can read it, is
// sealed: encrypted and authenticated with AES-256-GCM under one key, with a purpose that is not
// part of it and has to be the same when it is opened. The nonce is random; at 2^32 texts a key
// the chance of a repetition stays below 2^-32.

// A Key is that of a server: 32 random bytes.
type Key [32]byte

// ParseKey reads a key, as DIALAI_SERVER_KEY has it: in base64. The error repeats nothing of it.
func ParseKey(text string) (k Key, err error) {
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(data) != len(k) {
		return k, errors.New("it is not 32 bytes in base64; openssl rand -base64 32 makes such a key")
	}
	copy(k[:], data)
	return k, nil
}

// NewKey makes a key.
func NewKey() (k Key) {
	rand.Read(k[:]) // it does not fail
	return k
}

// KeyFile returns the key in a file that nobody else can read; it makes one if there is none.
func KeyFile(path string) (Key, error) {
	text, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = writeNew(path, NewKey()); err == nil || errors.Is(err, fs.ErrExist) {
			text, err = read(path) // of two that make one at once, the first counts
		}
	}
	if err != nil {
		return Key{}, err
	}
	k, err := ParseKey(string(text))
	if err != nil {
		return k, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

// read reads a file that nobody else may read.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by others: chmod 600 changes that", path)
	}
	return files.ReadRegular(path, files.ServerKey)
}

// writeNew writes a key into a file that is there whole or not at all.
func writeNew(path string, k Key) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = io.WriteString(file, base64.StdEncoding.EncodeToString(k[:])+"\n")
	err = errors.Join(err, file.Sync(), file.Close())
	if err != nil {
		return err
	}
	return os.Link(file.Name(), path)
}

// ErrOpen is returned for what was not sealed with the key, or for another purpose.
var ErrOpen = errors.New("it was not sealed here, or not for this")

// Seal returns a text sealed for a purpose, in letters that are safe in addresses.
func (k Key) Seal(purpose string, text []byte) string {
	a := k.gcm()
	return base64.RawURLEncoding.EncodeToString(a.Seal(nil, nil, text, []byte(purpose)))
}

// Open returns the text that was sealed for a purpose; the error is [ErrOpen].
func (k Key) Open(purpose, sealed string) ([]byte, error) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil || strings.ContainsAny(sealed, "\r\n") { // which the decoder passes over
		return nil, ErrOpen
	}
	text, err := k.gcm().Open(nil, nil, data, []byte(purpose))
	if err != nil {
		return nil, ErrOpen
	}
	return text, nil
}

func (k Key) gcm() cipher.AEAD {
	block, err := aes.NewCipher(k[:])
	if err == nil {
		var a cipher.AEAD
		if a, err = cipher.NewGCMWithRandomNonce(block); err == nil {
			return a
		}
	}
	panic(err) // the key has 32 bytes
}
