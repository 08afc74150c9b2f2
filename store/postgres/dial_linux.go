package postgres

import (
	"net"
	"syscall"
	"time"
)

// userTimeout is TCP_USER_TIMEOUT, which package syscall does not name.
const userTimeout = 18

// giveUp has a connection end once what was sent was not acknowledged for so long: else a server that
// vanishes without a word would be waited for a quarter of an hour.
func giveUp(conn *net.TCPConn, after time.Duration) {
	if raw, err := conn.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout, int(after.Milliseconds()))
		})
	}
}
