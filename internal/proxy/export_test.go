package proxy

import "github.com/modelcontextprotocol/go-sdk/mcp"

// Over is a Side that is reached in a way of a test's own.
func Over(t mcp.Transport) Side { return Side{t} }

// ReadCall is what is taken from the parameters of a call.
var ReadCall = readCall
