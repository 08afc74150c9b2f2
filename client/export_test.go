package client

import "time"

// SetSilent sets after how long without a byte a stream is taken for dead.
func (c *Client) SetSilent(d time.Duration) { c.silent = d }
