//go:build !linux

package postgres

import (
	"net"
	"time"
)

// giveUp has a connection notice a server that vanishes without a word, as far as the system can.
func giveUp(conn *net.TCPConn, after time.Duration) {
	conn.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: after / 2, Interval: after / 6, Count: 3})
}
