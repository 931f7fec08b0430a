package main

import (
	"context"
	"io"
	"log"

	pb "tidemill.dev/examples/go/gen/tidemillv1"
)

// readGroup reads the topic as the only member of a group, over one Subscribe stream, commits how far it came, and leaves.
// It answers how many records came.
func readGroup(ctx context.Context, server, topic, group string) int {
	conn := dial(server)
	found, err := pb.NewGroupsClient(conn).FindCoordinator(ctx, &pb.FindCoordinatorRequest{Group: group})
	conn.Close()
	if err != nil {
		log.Fatalf("find the coordinator of %s: %v", group, err)
	}
	conn = dial(found.Address)
	defer conn.Close()
	groups := pb.NewGroupsClient(conn)
	stream, err := groups.Subscribe(ctx)
	if err != nil {
		log.Fatalf("subscribe: %v", err)
	}
	join := &pb.JoinGroupRequest{
		Group: group, Incarnation: 1, Attempt: 1, Client: "example",
		Member:       "example-member",
		Subscription: &pb.Subscription{Topics: []string{topic}},
	}
	if err := stream.Send(&pb.SubscribeRequest{Request: &pb.SubscribeRequest_Join{Join: join}}); err != nil {
		log.Fatalf("join: %v", err)
	}
	answer, err := stream.Recv()
	if err != nil {
		log.Fatalf("join: %v", err)
	}
	a := answer.Assignment
	// The only member has everything at once; one of several would read what each answer assigns, and give up what it does not.
	var wanted []*pb.GroupPartition
	for _, p := range a.Assigned {
		wanted = append(wanted, &pb.GroupPartition{Topic: p.Topic, Partition: p.Partition, TopicId: p.TopicId})
	}
	committed, err := groups.FetchOffsets(ctx, &pb.FetchOffsetsRequest{
		Group: group, Member: a.Member, Epoch: a.Epoch, Partitions: wanted,
	})
	if err != nil {
		log.Fatalf("fetch offsets: %v", err)
	}
	read := 0
	var offsets []*pb.OffsetToCommit
	where := map[uint32]*pb.Partition{}
	for _, p := range owners(ctx, conn, topic) {
		where[p.Index] = p
	}
	for _, c := range committed.Offsets {
		// -1: nothing is committed yet.
		values, next := consumeFrom(ctx, where[c.Partition], topic, max(c.Offset, 0))
		read += len(values)
		offsets = append(offsets, &pb.OffsetToCommit{Topic: topic, Partition: c.Partition, Offset: next})
	}
	done, err := groups.CommitOffsets(ctx, &pb.CommitOffsetsRequest{
		Group: group, Member: a.Member, Epoch: a.Epoch, Offsets: offsets,
	})
	if err != nil {
		log.Fatalf("commit: %v", err)
	}
	for _, r := range done.Results {
		if r.Error != nil {
			log.Fatalf("commit %s/%d: %s: %s", r.Topic, r.Partition, r.Error.Code, r.Error.Message)
		}
	}
	leave := &pb.LeaveGroupRequest{Group: group, Member: a.Member, Epoch: a.Epoch}
	if err := stream.Send(&pb.SubscribeRequest{Request: &pb.SubscribeRequest_Leave{Leave: leave}}); err != nil {
		log.Fatalf("leave: %v", err)
	}
	for {
		if _, err := stream.Recv(); err == io.EOF {
			return read
		} else if err != nil {
			log.Fatalf("leave: %v", err)
		}
	}
}
