package specialist

import "context"

// A Room is what a budget has set aside for one ask: how many calls of a model it
// may make. Whoever asks a model stops before it would make more, as it stops at a
// deadline. The zero Room sets no bound.
type Room struct {
	Calls  int64 // of any kind; 0 is no bound
	Billed int64 // that a provider may charge for; 0 is no bound
}

type roomKey struct{}

// WithRoom returns a context that carries r.
func WithRoom(ctx context.Context, r Room) context.Context {
	return context.WithValue(ctx, roomKey{}, r)
}

// RoomOf returns the Room that a context carries, or the zero one.
func RoomOf(ctx context.Context) Room {
	r, _ := ctx.Value(roomKey{}).(Room)
	return r
}
